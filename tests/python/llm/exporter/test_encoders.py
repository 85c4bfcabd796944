"""Embeddings of encoders and decoders of every family equal those of transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from encoder_models import ENCODER_CASES, padded, pooled, small_encoder
from llm_models import small_model

import rushlight.llm
from rushlight.llm.runner import Runner

ALIKE = ("electra", "xlm-roberta", "camembert")  # their definitions are BERT's or RoBERTa's
FULL_POOLINGS = [pytest.param(name, marks=pytest.mark.full) for name in ("last", "cls")]
LENGTHS = (1, 17, 98, 5, 40, 2, 61, 33, 1)


def _texts(vocabulary: int = 320) -> list[list[int]]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randint(3, vocabulary, (n,), generator=generator).tolist() for n in LENGTHS]


def _expected(model: Any, texts: list[list[int]], pooling: str) -> np.ndarray:
    ids, mask = padded(texts)
    with torch.no_grad():
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return pooled(hidden, mask, pooling).numpy()


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine distances of rows."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return 1 - (a.astype(np.float64) * b).sum(1) / norms


def _runner(model: Any, **options: Any) -> Runner:
    return rushlight.llm.load(
        rushlight.llm.export(model, verify=False, **options).buffer, threads=1
    )


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.full) if c in ALIKE else c for c in ENCODER_CASES]
)
def test_encoders_equal_transformers(case: str) -> None:
    model = small_encoder(case)
    program = rushlight.llm.export(model, pooling="cls", verify=case == "bert")
    assert len(program.manager.payloads) == 1  # the masks are computed with the rest
    runner = rushlight.llm.load(program.buffer, threads=1)
    assert runner.is_encoder and runner.hidden == 48 and runner.context in (100, 98)
    got = runner.embed(_texts(), normalize=False)
    assert got.dtype == np.float32
    wanted = _expected(model, _texts(), "cls")
    assert np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max()


@pytest.mark.full
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_poolings_of_encoders(pooling: str) -> None:
    model = small_encoder("bert")
    got = _runner(model, pooling=pooling).embed(_texts(), normalize=False)
    np.testing.assert_allclose(got, _expected(model, _texts(), pooling), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("backend", "case"),
    [
        *(("portable", "modernbert"), ("xnnpack", "bert")),
        pytest.param("portable", "bert", marks=pytest.mark.full),
        pytest.param("xnnpack", "modernbert", marks=pytest.mark.full),
    ],
)
def test_encoders_on_other_backends(backend: str, case: str) -> None:
    model = small_encoder(case)
    got = _runner(model, backend=backend).embed(_texts(), normalize=False)
    np.testing.assert_allclose(got, _expected(model, _texts(), "mean"), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("quantize", "most"),
    [("int8", 0.01), ("8da4w", 0.1), pytest.param("bf16", 1e-3, marks=pytest.mark.full)],
)
def test_quantised_encoders(quantize: str, most: float) -> None:
    model = small_encoder("bert", hidden_size=96, intermediate_size=192, num_hidden_layers=1)
    runner = _runner(model, quantize=quantize, quantize_embedding="int8")
    assert _distances(runner.embed(_texts()), _expected(model, _texts(), "mean")).max() < most


@pytest.mark.parametrize("pooling", ["mean", *FULL_POOLINGS])
def test_decoders(pooling: str) -> None:
    model = small_model("qwen3", num_hidden_layers=1)
    program = rushlight.llm.export(
        model, context=98, batch=24, wanted=4, embed=True, pooling=pooling, verify=False
    )
    runner = rushlight.llm.load(program.buffer, threads=1, kv="float32")
    got = runner.embed(_texts(), normalize=False)
    wanted = _expected(model.base_model, _texts(), pooling)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
    assert runner.cache_bytes == 0
    prompt = _texts()[1]
    reply = runner.generate(prompt, max_tokens=4, temperature=0, ignore_eos=True)
    with torch.no_grad():
        text = model.generate(
            torch.tensor([prompt]), max_new_tokens=4, do_sample=False, eos_token_id=-1
        )
    assert reply.tokens == text[0, len(prompt) :].tolist()
