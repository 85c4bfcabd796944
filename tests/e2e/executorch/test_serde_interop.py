"""Files of exported programs: ExecuTorch's are read here, ours there, and both compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

import rushlight as rl
from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.exir.manager import EdgeProgramManager, to_edge, to_edge_transform_and_lower
from rushlight.partition import get_lowered_submodules
from rushlight.record import exir_files as serde

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop
STAGES = ("aten", "edge", "xnnpack", "out")


class Several(nn.Module):
    """Several results, a size among them, and views."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        values, indices = torch.topk(self.linear(x), 2)
        return torch.sin(values).reshape(-1), indices, torch.split(x, 2, dim=1)


class Counting(nn.Module):
    """A buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return self.linear(x) + self.calls


MODELS = {"several": Several, "counting": Counting}
DYNAMIC = "counting"  # has a dynamic size, which ExecuTorch's edge pass fixes in the other


def captured(name: str) -> tuple[ExportedProgram, torch.Tensor]:
    """A program and an input, of another size than the example if sizes are dynamic."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    shapes = ({0: Dim("batch", min=2, max=9)},) if name == DYNAMIC else None
    program = torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=shapes)
    return program, torch.randn(5 if name == DYNAMIC else 3, 4)


def lowered(program: ExportedProgram, stage: str) -> ExportedProgram:
    if stage == "aten":
        return program
    if stage == "xnnpack":
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        return edge.exported_program()
    edge = to_edge(program)
    return (edge.to_executorch() if stage == "out" else edge).exported_program()


def outputs(path: Path) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [arrays[f"out{i}"] for i in range(len(arrays))]


def computed(program: ExportedProgram, x: torch.Tensor) -> list[np.ndarray]:
    with torch.no_grad():
        return [one.numpy() for one in torch.utils._pytree.tree_leaves(program.module()(x))]


def assert_equal(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


CASES = [
    (name, stage) for name in MODELS for stage in STAGES if (name, stage) != ("counting", "out")
]


@pytest.mark.parametrize(("name", "stage"), CASES)
def test_executorchs_files_are_read_here(
    executorch: ExecuTorch, tmp_path: Path, name: str, stage: str
) -> None:
    program, x = captured(name)
    torch.export.save(program, tmp_path / "m.pt2")
    np.savez(tmp_path / "in.npz", in0=x.numpy())
    executorch.call(
        "save_program",
        program=tmp_path / "m.pt2",
        data=tmp_path / "in.npz",
        path=tmp_path / "m.exir",
        stage=stage,
        outputs=tmp_path / "out.npz",
    )
    loaded = serde.load(tmp_path / "m.exir")
    assert_equal(computed(loaded, x), outputs(tmp_path / "out.npz"))
    if stage == "xnnpack":  # the payload is ExecuTorch's own, and runs
        expected = computed(serde.load(tmp_path / "m.exir"), x)
        manager = EdgeProgramManager(serde.load(tmp_path / "m.exir"))
        module = rl.load(manager.to_executorch().buffer)
        for mine, other in zip(torch.utils._pytree.tree_leaves(module(x)), expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "stage"), CASES)
def test_our_files_are_read_there(
    executorch: ExecuTorch, tmp_path: Path, name: str, stage: str
) -> None:
    program, x = captured(name)
    made = lowered(program, stage)
    serde.save(made, tmp_path / "m.exir")
    np.savez(tmp_path / "in.npz", in0=x.numpy())
    ids = executorch.call(
        "load_program",
        path=tmp_path / "m.exir",
        data=tmp_path / "in.npz",
        outputs=tmp_path / "out.npz",
        **({"pte": tmp_path / "m.pte"} if stage in ("edge", "xnnpack") else {}),
    )
    assert ids == [one.backend_id for _, one, _ in get_lowered_submodules(made.graph_module)]
    assert (stage == "xnnpack") == ("XnnpackBackend" in ids)
    expected = computed(made, x)
    assert_equal(expected, outputs(tmp_path / "out.npz"))
    if stage in ("edge", "xnnpack"):  # ExecuTorch lowers it on, and the file runs here
        module = rl.load(tmp_path / "m.pte")
        for mine, other in zip(torch.utils._pytree.tree_leaves(module(x)), expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), other, rtol=1e-5, atol=1e-6)
