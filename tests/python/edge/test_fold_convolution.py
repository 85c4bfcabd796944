"""fold_convolution: padding and batch norm go into the convolution's own arguments."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from expecttest import assert_expected_inline
from graphs import core, operators, run
from pass_text import text, traced

from rushlight.edge.constants import Constants
from rushlight.edge.passes.fold_convolution import fold_convolution
from rushlight.ir.rewrite import remove_dead

aten = torch.ops.aten


class _Block(torch.nn.Module):
    def __init__(self, *, bias: bool, affine: bool, pads: tuple[int, ...], stride: int = 1) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=stride, bias=bias)
        self.norm = torch.nn.BatchNorm2d(4, affine=affine)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)
        self.pads = pads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(F.pad(x, self.pads))))


def _written_out(
    x: torch.Tensor, w: Any, b: Any, gain: Any, shift: Any, mean: Any, var: Any
) -> Any:
    padded = aten.constant_pad_nd.default(x, [1, 1, 2, 2], 0.0)
    y = aten.convolution.default(padded, w, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    norm = aten._native_batch_norm_legit_no_training.default(y, gain, shift, mean, var, 0.1, 0.0)
    return norm[0].relu()


def test_padding_and_norm_become_arguments_of_the_convolution() -> None:
    numbers = {"b": 1.0, "gain": 2.0, "shift": 3.0, "mean": 0.5, "var": 4.0}
    constants = {name: torch.tensor([value]) for name, value in numbers.items()}
    program = traced(_written_out, torch.ones(1, 1, 4, 4), w=torch.ones(1, 1, 1, 2), **constants)
    remove_dead(program.graph)
    own = Constants(program)
    assert fold_convolution(own) == 2
    remove_dead(program.graph)
    own.drop_unused()
    # The scale is gain / sqrt(var) = 1; the bias 1.0 - mean + shift.
    assert_expected_inline(
        text(program),
        """\
c0: float32[1] = [3.5]
c1: float32[1, 1, 1, 2] = [[[[1, 1]]]]
x: float32[1, 1, 4, 4]
%1: float32[1, 1, 8, 5] = convolution(x, c1, c0, [1, 1], [2, 1], [1, 1], False, [0, 0], 1)
%2: float32[1, 1, 8, 5] = relu(%1)
return [%2]
""",
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_padding_and_norm_fold(bias: bool, affine: bool) -> None:
    model = _Block(bias=bias, affine=affine, pads=(1, 1, 2, 2)).eval()
    x = torch.randn(2, 3, 6, 5)
    program = core(model, x)
    assert fold_convolution(Constants(program)) == 2
    assert operators(program.graph) == ["convolution.default", "relu.default"]
    torch.testing.assert_close(run(program, x)[0], model(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_in_halves_fold_where_halves_hold_the_weights(dtype: torch.dtype) -> None:
    model = _Block(bias=True, affine=True, pads=(0, 0)).eval().to(dtype)
    x = torch.randn(2, 3, 6, 5).to(dtype)
    program = core(model, x)
    assert fold_convolution(Constants(program)) == 2
    exact, eps = model.float()(x.float()), torch.finfo(dtype).eps
    torch.testing.assert_close(run(program, x)[0].float(), exact, rtol=8 * eps, atol=8 * eps)


@pytest.mark.parametrize(("factor", "variance"), [(6e4, 1e-4), (1e-7, 6e4)])
def test_weights_that_float16_cannot_hold_stay(factor: float, variance: float) -> None:
    model = _Block(bias=False, affine=True, pads=(0, 0)).eval()
    model.norm.weight.data.fill_(factor)
    model.norm.running_var.fill_(variance)
    program = core(model.half(), torch.randn(2, 3, 6, 5).half())
    assert fold_convolution(Constants(program)) == 1  # the padding


def test_a_padding_of_unequal_sides_stays() -> None:
    model = _Block(bias=False, affine=True, pads=(0, 1, 0, 1), stride=2).eval()
    x = torch.randn(1, 3, 6, 6)
    program = core(model, x)
    assert fold_convolution(Constants(program)) == 1
    assert operators(program.graph)[0] == "constant_pad_nd.default"
    torch.testing.assert_close(run(program, x)[0], model(x))


def test_a_convolution_that_others_read_stays() -> None:
    model = _Block(bias=False, affine=True, pads=(0, 0)).eval()

    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = model.conv(x)
        return y, model.norm(y)

    x = torch.randn(1, 3, 6, 6)
    program = core(both, x)
    assert fold_convolution(Constants(program)) == 0


def test_a_transposed_convolution_and_its_norm_stay() -> None:
    model = torch.nn.Sequential(
        torch.nn.ConvTranspose2d(3, 4, 2, stride=2), torch.nn.BatchNorm2d(4)
    ).eval()
    x = torch.randn(1, 3, 4, 4)
    program = core(model, x)
    assert fold_convolution(Constants(program)) == 0
    torch.testing.assert_close(run(program, x)[0], model(x))
