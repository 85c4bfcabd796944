"""What exports hold in memory: weights lie in files, and methods share them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
MEDIUM = {**LARGE, "hidden_size": 512, "intermediate_size": 4096, "num_hidden_layers": 1}
PARTS = 48 << 20  # bytes of what is made at a time, and of what the allocator keeps
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


class Exporter:
    """A process that exports, and reports peaks of memory over that at the beginning of an export.

    What a first export imports and keeps is the same for any model, and does not count.

    Args:
        folder: for the files that are written.
        slight: a model with next to no weights.
    """

    def __init__(self, folder: Path, slight: Path) -> None:
        self._folder = folder
        self._side = Side(sys.executable, ROOT / "benchmarks" / "sides" / "llm_files.py")
        self._slight = slight

    def __enter__(self) -> Exporter:
        self._side.__enter__()
        self.peaks(self._slight, None)
        self.least = self.peaks(self._slight, None)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._side.__exit__(*exception)

    def peaks(self, source: Path, recipe: str | None, *, verify: bool = True) -> dict[str, int]:
        """Bytes of all memory, of that which no file backs, and of the file that is made."""
        file = self._folder / "m.pte"
        given = {"source": str(source), "file": str(file), "context": 512}
        figures = self._side.call("rushlight", **given, recipe=recipe, verify=verify)
        size = file.stat().st_size
        file.unlink()
        return {"all": figures["peak"], "private": figures["private"], "file": size}


def _check_peaks(exporter: Exporter, source: Path, recipe: str | None, *, verify: bool) -> None:
    """All memory is at most 1.3 times the weights, or the file if that is larger: the runtime that
    verifies it reads all of it. What no file backs does not grow with the model."""
    files = source.glob("*.safetensors") if source.is_dir() else [source]
    weights = sum(one.stat().st_size for one in files)
    peaks = exporter.peaks(source, recipe, verify=verify)
    most = 1.3 * max(weights, peaks["file"])
    assert peaks["all"] - exporter.least["all"] < most, f"{peaks} of {weights}"
    assert peaks["private"] - exporter.least["private"] < PARTS, f"{peaks} of {weights}"


RECIPES = (None, "bf16", "fp16", "float32", "int8", "8da4w")
GGUF_RECIPES = (
    *(("F16", recipe) for recipe in (None, "8da4w")),
    *(("Q4_0", recipe) for recipe in (None, "8da4w")),
    *(("Q8_0", recipe) for recipe in (None, "int8", "bf16")),
)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("exports")
    small_model("smollm", **{**MEDIUM, **SLIGHT}).save_pretrained(folder / "slight")
    with Exporter(folder, folder / "slight") as started:
        yield started


def test_an_export_takes_little_memory(exporter: Exporter, tmp_path: Path) -> None:
    small_model("smollm", **MEDIUM).to(torch.bfloat16).save_pretrained(tmp_path)
    for recipe in ("bf16", "float32", "int8", "8da4w"):
        _check_peaks(exporter, tmp_path, recipe, verify=True)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of 188 MB in bfloat16, as a folder and as GGUF files."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "gguf"))
    from gguf_files import write_gguf

    folder = tmp_path_factory.mktemp("large")
    model = small_model("smollm", **LARGE)
    kinds = dict.fromkeys(kind for kind, _ in GGUF_RECIPES)
    found = {kind: write_gguf(model, folder / f"{kind}.gguf", kind) for kind in kinds}
    model.to(torch.bfloat16).save_pretrained(folder / "source")
    return {**found, "source": folder / "source"}


@pytest.mark.full
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    ("source", "recipe"), [*(("source", one) for one in RECIPES), *GGUF_RECIPES]
)
def test_a_large_export_takes_little_memory(
    exporter: Exporter, sources: dict[str, Path], source: str, recipe: str | None, verify: bool
) -> None:
    _check_peaks(exporter, sources[source], recipe, verify=verify)
