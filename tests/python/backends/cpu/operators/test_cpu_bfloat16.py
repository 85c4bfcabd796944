"""The cpu backend: weights of products stored as bfloat16, with sums in float32."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from cpu_models import equal, lowered, operators_of
from torch import nn

import rushlight as rl
from delegates import lowered_modules
from rushlight.backends.cpu import CpuBackend, CpuPartitioner
from rushlight.partition import CompileSpec
from rushlight.schema import cpu_engine as fb
from rushlight.schema.common import ScalarType


def halved(model: nn.Module, *args: Any) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args)
    partitioner = CpuPartitioner(weights="bfloat16")
    return rl.to_edge_transform_and_lower(exported, partitioner=[partitioner])


def rounded(model: nn.Module, *names: str) -> nn.Module:
    """The model with these parameters rounded to bfloat16."""
    for name, parameter in model.named_parameters():
        if name in names:
            parameter.data = parameter.data.bfloat16().float()
    return model


class Layers(nn.Module):
    """Both spellings of products, a convolution, and an embedding that is the last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(50, 24), nn.Linear(24, 50, bias=False)
        self.out.weight = self.table.weight
        self.up, self.matrix = nn.Linear(24, 40), nn.Parameter(torch.randn(40, 24))
        self.convolution = nn.Conv1d(24, 24, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.table(x)).relu() @ self.matrix
        y = y + self.convolution(y.transpose(1, 2)).transpose(1, 2)
        result: torch.Tensor = self.out(y)
        return result


TOKENS = torch.randint(0, 50, (2, 9))
WEIGHTS = ("table.weight", "up.weight", "matrix")


def test_results_are_those_of_rounded_weights() -> None:
    torch.manual_seed(0)
    model = Layers()
    edge = halved(model, TOKENS)
    assert operators_of(edge).count("Product") + operators_of(edge).count("Product+") == 3
    module = rl.load(bytes(edge.to_executorch().buffer), threads=2)
    with torch.no_grad():
        equal(module(TOKENS), rounded(model, *WEIGHTS)(TOKENS))


def test_weights_of_products_take_half() -> None:
    [part] = lowered_modules(halved(Layers(), TOKENS).exported_program())
    graph = fb.unpack(part.processed_bytes)
    sizes = {
        value.index: (value.dtype, constant.size)
        for value in graph.values
        if value.place == fb.Place.CONSTANT
        for constant in [graph.constants[value.index]]
    }
    halves = [size for dtype, size in sizes.values() if dtype == ScalarType.BFLOAT16]
    # Panels of 16 columns: 64 of 24 terms, 48 of 24, 32 of 40; the table is not stored again.
    assert sorted(halves) == sorted([64 * 24 * 2, 48 * 24 * 2, 32 * 40 * 2])


@pytest.mark.parametrize("rows", [1, 5, 7, 40])
@pytest.mark.parametrize("columns", [1, 16, 33])
def test_rows_and_columns(rows: int, columns: int) -> None:
    model, x = nn.Linear(37, columns), torch.randn(rows, 37)
    module = rl.load(bytes(halved(model, x).to_executorch().buffer))
    with torch.no_grad():
        equal(module(x), rounded(model, "weight")(x))


RUN = """
import sys, numpy as np, rushlight as rl
file, data, out = sys.argv[1:]
np.save(out, rl.load(file)(np.load(data)))
"""


@pytest.mark.parametrize("isa", ["plain", "avx2", "avx512"])
def test_each_instruction_set(isa: str, tmp_path: Path) -> None:
    model = Layers()
    (tmp_path / "model.pte").write_bytes(halved(model, TOKENS).to_executorch().buffer)
    np.save(tmp_path / "in.npy", TOKENS.numpy())
    files = [str(tmp_path / n) for n in ("model.pte", "in.npy", "out.npy")]
    env = {**os.environ, "RUSHLIGHT_CPU": isa}
    subprocess.run([sys.executable, "-c", RUN, *files], check=True, env=env)
    with torch.no_grad():
        equal(
            torch.from_numpy(np.load(tmp_path / "out.npy")), rounded(model, *WEIGHTS)(TOKENS), 1e-4
        )


def test_a_language_model(models: ModuleType) -> None:
    case = models.build("llama_tiny")
    files = [
        bytes(edge.to_executorch().buffer)
        for edge in (halved(case.module, *case.args), lowered(case.module, *case.args))
    ]
    results = [rl.load(file)(*case.leaves()) for file in files]
    equal(*results, 3e-2)
    assert not torch.equal(*results)
    with torch.no_grad():
        names = [n for n, p in case.module.named_parameters() if p.dim() == 2]
        equal(results[0], rounded(case.module, *names)(*case.args), 2e-4)


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(rl.ExportError, match="weights='int8': the cpu backend stores weights as"):
        CpuPartitioner(weights="int8")
    with pytest.raises(rl.ExportError, match="unknown compile spec 'weight': allowed is weights"):
        CpuBackend.preprocess(
            torch.export.export(Layers(), (TOKENS,)), [CompileSpec("weight", b"")]
        )
