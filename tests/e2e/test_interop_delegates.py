"""Programs with delegates of the demo backend, both ways with real ExecuTorch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from benchmarks import side

import rushlight as rl
from rushlight import runtime
from rushlight.backends.demo import AddMulPartitionerDemo, DemoPartitioner

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop

NAME = "BackendWithCompilerDemo"


class AddMul(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a, b) + b


ARGS = (torch.randn(2, 2), torch.randn(2, 2))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, **{f"in{i}": x.numpy() for i, x in enumerate(ARGS)})
    return path


def test_a_backend_that_is_not_there_is_reported_by_both(
    executorch: ExecuTorch, data: Path, tmp_path: Path
) -> None:
    program = rl.export(AddMul(), ARGS, backend=AddMulPartitionerDemo())
    ours = tmp_path / "ours.pte"
    ours.write_bytes(program.buffer)
    with pytest.raises(side.SideError, match="0x20"):  # NotFound
        executorch.call("run", pte=ours, data=data, outputs=tmp_path / "out.npz")
    # The id is the only thing that says whose it is; here nobody has this one.
    unknown = "BackendWithoutRuntimeXX"
    assert len(unknown) == len(NAME)
    other = program.buffer.replace(NAME.encode(), unknown.encode())
    with pytest.raises(rl.LoadError, match=rf"{unknown}\n    for forward: delegate 0") as caught:
        rl.load(other)
    assert caught.value.code == rl.errors.Code.NOT_FOUND
    assert unknown not in runtime.backend_registry.registered_backend_names


def test_a_fat_program_runs_there_as_portable(
    executorch: ExecuTorch, data: Path, tmp_path: Path
) -> None:
    program = rl.export(AddMul(), ARGS, backend=[DemoPartitioner()])
    ours = tmp_path / "ours.pte"
    ours.write_bytes(program.buffer)
    assert rl.load(ours).forms[0].chosen
    executorch.call("run", pte=ours, data=data, outputs=tmp_path / "out.npz")
    there = np.load(tmp_path / "out.npz")["out0"]
    np.testing.assert_allclose(there, AddMul()(*ARGS), rtol=1e-5)


def test_executorchs_demo_payload_is_refused_as_another_version(
    executorch: ExecuTorch, data: Path, tmp_path: Path
) -> None:
    """The two have one id and each a text of its own; none runs the other's by mistake."""
    exported, theirs = tmp_path / "model.pt2", tmp_path / "theirs.pte"
    torch.export.save(torch.export.export(AddMul(), ARGS), exported)
    assert executorch.call("delegate_demo", program=exported, pte=theirs) == [NAME]
    with pytest.raises(side.SideError, match="0x20"):
        executorch.call("run", pte=theirs, data=data, outputs=tmp_path / "out.npz")
    with pytest.raises(rl.LoadError, match="it is not of version 1"):
        rl.load(theirs)
