"""What exports hold in memory: weights lie in files, and methods share them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from llm_models import Session, small_model

import rushlight as rl
import rushlight.llm
from rushlight.peers.side import Side

ROOT = Path(__file__).resolve().parents[4]
LEAST = 1 << 16  # bytes
WIDE = {"hidden_size": 288, "intermediate_size": 640, "head_dim": 32, "num_hidden_layers": 1}
LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "head_dim": 64,
    "vocab_size": 16384,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "num_hidden_layers": 6,
}
SLIGHT = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 512}


def _weights(program: rl.Program) -> list[Any]:
    """The bytes that backends store beside payloads."""
    stored = program.manager._emitted.named_data
    return [stored.buffers[entry.buffer_index] for entry in stored.pte_data.values()]


@pytest.mark.parametrize(
    ("quantize", "backend"),
    [("bf16", "cpu"), ("8da4w", "cpu"), ("8da4w", "xnnpack"), (None, "cpu")],
)
def test_weights_of_a_program_lie_in_a_file(quantize: str | None, backend: str) -> None:
    model = small_model("smollm", **WIDE)
    tokens = torch.arange(9)
    program = rl.llm.export(model, quantize=quantize, backend=backend, batch=16, verify=False)
    large = [one for one in _weights(program) if len(one) >= LEAST]
    assert large and all(isinstance(one, np.ndarray) for one in large)
    if backend == "cpu":
        before = Session(program).give(tokens)
        for parameter in model.parameters():  # later changes of the model are not the program's
            parameter.zero_()
        program.manager._buffer = None
        assert torch.equal(Session(program).give(tokens), before)


@pytest.mark.parametrize(
    "quantize",
    ["bf16", "8da4w", *(pytest.param(r, marks=pytest.mark.full) for r in ("fp16", "float32"))],
)
def test_a_tied_table_is_stored_once_for_all_methods(quantize: str) -> None:
    model = small_model("smollm", vocab_size=4096, **WIDE)
    program = rl.llm.export(model, quantize=quantize, batch=16, embed=True, verify=False)
    *_, second, table = sorted(sizes := [len(one) for one in _weights(program)])
    assert table > 4 * second  # the other weights are much smaller
    assert len(program.buffer) < sum(sizes) + 100_000  # and no payload has weights


def test_a_method_that_embeds_reads_the_output_layers_table() -> None:
    model = small_model("smollm", vocab_size=4096, **WIDE)
    program = rl.llm.export(model, quantize="bf16", batch=16, embed=True)
    tokens = torch.arange(7)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.copy_(parameter.bfloat16())
    wanted = model.base_model(tokens[None]).last_hidden_state[0]
    got = Session(program, method="embed").give(tokens)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of 188 MB in bfloat16, as a folder and as GGUF files, and one of next to nothing."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "gguf"))
    from gguf_files import write_gguf

    folder = tmp_path_factory.mktemp("large")
    model = small_model("smollm", **LARGE)
    found = {kind: write_gguf(model, folder / f"{kind}.gguf", kind) for kind in ("Q4_0", "Q8_0")}
    model.to(torch.bfloat16).save_pretrained(folder / "source")
    small_model("smollm", **{**LARGE, **SLIGHT}).save_pretrained(folder / "slight")
    return {**found, "source": folder / "source", "slight": folder / "slight"}


@pytest.fixture(scope="module")
def least(sources: dict[str, Path]) -> int:
    """The private bytes of an export whose model has next to no weights."""
    return _private(sources["slight"], None)


def _private(source: Path, recipe: str | None) -> int:
    """The peak of memory that no file backs, during an export that is verified."""
    with (
        tempfile.TemporaryDirectory(dir=source.parent) as folder,
        Side(sys.executable, ROOT / "benchmarks" / "sides" / "llm_files.py") as side,
    ):
        given = {"source": str(source), "file": str(Path(folder, "m.pte")), "context": 512}
        figures = side.call("rushlight", **given, recipe=recipe, verify=True)
    return int(figures["private"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("source", "recipe"),
    [
        *(("source", recipe) for recipe in ("bf16", "fp16", "float32", "int8", "8da4w")),
        *(("Q4_0", recipe) for recipe in (None, "8da4w")),
        *(("Q8_0", recipe) for recipe in (None, "int8")),
    ],
)
def test_a_verified_export_takes_little_memory(
    sources: dict[str, Path], least: int, source: str, recipe: str | None
) -> None:
    path = sources[source]
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    size = sum(one.stat().st_size for one in files)
    # The largest matrix is computed in float32; pages of mapped files are the system's.
    matrix = 4 * LARGE["vocab_size"] * LARGE["hidden_size"]
    assert _private(path, recipe) - least < matrix + size / 2
