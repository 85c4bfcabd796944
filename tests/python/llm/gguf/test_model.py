"""Programs of GGUF files compute what `transformers` computes with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from gguf_files import take_weights, write_gguf
from llm_models import CASES, Session, eager_logits, small_model

import rushlight.llm
from rushlight.llm.gguf.blocks import FORMS
from rushlight.llm.gguf.model import read_gguf
from rushlight.llm.gguf.types import TYPES

TOKENS = 150
NOT_IN_FILES = ("llama-dynamic", "gpt2-scaled", "qwen2")
"""Options that llama.cpp's files cannot say."""


IN_FILES = [case for case in CASES if case not in NOT_IN_FILES]
# Families that no other test of the gate makes a program of.
QUICK = ("gemma3", "phi4")


def _written(case: str, path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Writes a model to a file; returns a text and the logits that `transformers` computes."""
    model = small_model(case)
    write_gguf(model, path)
    tokens = torch.randint(0, model.config.vocab_size, (TOKENS,))
    with torch.no_grad():
        return tokens, model(tokens[None]).logits[0]


@pytest.mark.parametrize("case", IN_FILES)
def test_models_are_those_of_transformers(case: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    tokens, wanted = _written(case, path)
    got = eager_logits(read_gguf(path).model, tokens)
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()


@pytest.mark.parametrize(
    "case",
    [case if case in QUICK else pytest.param(case, marks=pytest.mark.full) for case in IN_FILES],
)
def test_logits_equal_transformers(case: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    tokens, wanted = _written(case, path)
    program = rushlight.llm.export(path, context=512, batch=256, wanted=256, verify=False)
    got = Session(program).give(tokens)
    assert (got - wanted).abs().max() < 1e-3 * wanted.abs().max()


_OTHER_TYPES = sorted({kind.name for kind in TYPES.values()} - {"Q4_0", "Q4_K"})
WIDE = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "head_dim": 32,
    "num_attention_heads": 8,
    "num_hidden_layers": 1,
}


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("llama", "Q4_0"),
        ("qwen3", "Q8_0"),
        ("qwen3", "Q6_K"),
        ("llama", "Q4_K"),
        *(pytest.param("llama", kind, marks=pytest.mark.full) for kind in _OTHER_TYPES),
    ],
)
def test_weights_of_every_type_are_computed_with(case: str, kind: str, tmp_path: Path) -> None:
    model = small_model(case, **WIDE)
    path = write_gguf(model, tmp_path / "model.gguf", kind)
    take_weights(model, path)
    program = rushlight.llm.export(path, context=512, batch=64, verify=False)
    prompt = torch.randint(0, model.config.vocab_size, (40,))
    with torch.no_grad():
        wanted = model(prompt[None]).logits[0]
    got = Session(program).give(prompt)
    error = (got - wanted).norm()
    if kind in ("F32", "F16", "BF16"):
        assert error < 1e-4 * wanted.norm()
    elif kind in FORMS:  # the rows are rounded as llama.cpp rounds them, its scales in float16
        others = _logits_of_llama_cpp(model, prompt)
        assert error < 1.1 * (others - wanted).norm()
    else:  # requantised, with 0.5 % of error in each matrix
        assert error < 5e-2 * wanted.norm()
        assert any(f"{kind} in the file" in line for line in program.quantization)


def _logits_of_llama_cpp(model: Any, prompt: torch.Tensor) -> torch.Tensor:
    """The logits of a model whose linear layers round their rows to llama.cpp's Q8_0."""

    def round_rows(layer: Any, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        rows = args[0].numpy().reshape(-1, args[0].shape[-1])
        kind = gguf.GGMLQuantizationType.Q8_0
        rounded = gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind)
        return (torch.from_numpy(rounded).reshape(args[0].shape),)

    layers = [one for one in model.modules() if isinstance(one, torch.nn.Linear)]
    hooks = [layer.register_forward_pre_hook(round_rows) for layer in layers]
    with torch.no_grad():
        logits: torch.Tensor = model(prompt[None]).logits[0]
    for hook in hooks:
        hook.remove()
    return logits
