"""What a report says of ExecuTorch is what real ExecuTorch does with the file, for every recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.inspect import ProgramReport
from rushlight.peers.side import SideError
from rushlight.quantization.recipes import RECIPES

if TYPE_CHECKING:
    from conftest import ExecuTorch

pytestmark = pytest.mark.interop


class Model(torch.nn.Module):
    """A convolution, a sum, an embedding and linear layers whose inputs are groups of 32."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution = torch.nn.Conv2d(3, 64, 3, padding=1)
        self.embedding = torch.nn.Embedding(16, 64)
        self.inner, self.outer = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)

    def forward(self, image: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.convolution(image)).mean((2, 3))
        return self.outer(torch.tanh(self.inner(features + self.embedding(token))))


INPUTS = (
    torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)),
    torch.tensor([1, 5, 9, 15]),
)


def _files(recipe: str, backend: str, path: Path) -> tuple[ProgramReport, list[torch.Tensor]]:
    """The report of a program, and the inputs that are written beside it."""
    program = rl.export(
        Model().eval(), INPUTS, quantize=recipe, calibrate=[INPUTS], backend=backend
    )
    program.save(path / "model.pte", quiet=True)
    half = RECIPES[recipe].dtype
    return program.report(), [x.to(half) if half and x.is_floating_point() else x for x in INPUTS]


@pytest.mark.parametrize("backend", ["portable", "xnnpack", "cpu"])
@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "bfloat16"])
def test_the_report_says_what_executorch_does(
    recipe: str, backend: str, executorch: ExecuTorch, tmp_path: Path
) -> None:
    """bfloat16 is left out: NumPy, which carries the inputs there, has none."""
    report, inputs = _files(recipe, backend, tmp_path)
    np.savez(tmp_path / "in.npz", **{f"in{i}": x.numpy() for i, x in enumerate(inputs)})
    files = {"pte": tmp_path / "model.pte", "data": tmp_path / "in.npz"}

    def run() -> np.ndarray:
        outputs = tmp_path / "out.npz"
        executorch.call("run", outputs=outputs, own_operators=True, **files)
        with np.load(outputs) as arrays:
            return arrays["out0"]

    if report.executorch:
        with pytest.raises(SideError):
            run()
        assert all("it has no" in reason for reason in report.executorch)
        return
    ours = rl.load(tmp_path / "model.pte")(*inputs)
    # One of 255 integers of a value in between is another where sums are rounded otherwise.
    np.testing.assert_allclose(run(), np.asarray(ours), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_executorch_runs_the_portable_form_of_every_recipe(recipe: str, tmp_path: Path) -> None:
    report, _ = _files(recipe, "portable", tmp_path)
    assert report.executorch == []


def test_the_report_names_the_library_that_executorch_needs(tmp_path: Path) -> None:
    report, _ = _files("int8", "portable", tmp_path)
    assert "runs, but only with its quantised kernels (import executorch.kernels.quantized" in str(
        report
    ).replace("\n", " ")
