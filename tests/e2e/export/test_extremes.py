"""Numbers near the ends of a type: as eager gives, or as near to float64 as eager or nearer."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import rushlight as rl

BACKENDS = ["portable", "cpu", "xnnpack"]
WIDTH = 36


class Function(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def rows() -> torch.Tensor:
    """Rows that are spread out, constant, and nearly constant, of several sizes."""
    generator = torch.Generator().manual_seed(0)
    tensors = []
    for size in (1e20, 3e38, 1e5, 1.0, 1e-25):
        units = torch.rand(WIDTH, generator=generator)
        constant = 2.0 ** int(math.log2(size))  # whose mean float64 has exactly
        tensors += [(2 * units - 1) * size, torch.full((WIDTH,), constant)]
        tensors += [(0.5 + 1e-3 * units) * size]
    return torch.stack(tensors)


REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "std": lambda x: x.std(-1),
    "std of columns": lambda x: x.reshape(15, 4, 9).std(1, keepdim=True),
    "std of all": lambda x: x[:3].std(),
    "std_mean": lambda x: torch.stack(torch.std_mean(x, -1, correction=0)),
    "var": lambda x: x[9:].var(-1),
    "mean": lambda x: x.mean(-1),
    "sum": lambda x: x.reshape(15, 4, 9).sum(1),
    "layer_norm": lambda x: F.layer_norm(x, (WIDTH,)),
    "group_norm": lambda x: F.group_norm(x.reshape(15, 4, 3, 3), 2),
    "group_norm, channels last": lambda x: F.group_norm(
        x.reshape(15, 4, 3, 3).to(memory_format=torch.channels_last), 2
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_of_any_size(name: str, backend: str) -> None:
    x, function = rows(), REDUCTIONS[name]
    eager, exact = function(x), function(x.double())
    actual = rl.load(rl.export(Function(function), (x,), backend=backend, verify=False).buffer)(x)
    exact = exact.float().double()  # what is more than a float holds is infinite
    loss = (eager.double() - exact).abs().nan_to_num(posinf=float("inf"))
    # Beside eager's own error, a few roundings of the greatest result, or of a term.
    scale = x.double() if name in ("mean", "sum") else exact[exact.isfinite()]
    error = (actual.double() - exact).abs().nan_to_num()
    assert ((actual.double() == exact) | (error <= 2 * loss + 1e-5 * scale.abs().amax())).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("backend", ["portable", "cpu"])
def test_the_deviation_of_halves_whose_squares_are_infinite(
    dtype: torch.dtype, backend: str
) -> None:
    size = 3e4 if dtype == torch.float16 else 1e30
    x = (torch.linspace(-1, 1, 32) * size).reshape(2, 16).to(dtype)
    model = Function(lambda x: x.std(-1))
    actual = rl.load(rl.export(model, (x,), backend=backend).buffer)(x)
    torch.testing.assert_close(actual, x.std(-1))


ENDS = torch.tensor(
    [torch.inf, -torch.inf, torch.nan, 3e38, -3e38, 1e20, -1e20, 1e-40, -1e-40, 0.0, -0.0] * 3
)
ACTIVATIONS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    *(F.gelu, F.silu, F.mish, F.softplus, F.elu, F.hardswish, F.hardsigmoid, F.logsigmoid),
    *(torch.sigmoid, torch.tanh, torch.erf, torch.exp, torch.log1p, torch.expm1, torch.rsqrt),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("backend", BACKENDS)
def test_activations_at_the_ends(backend: str, dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        tanh = F.gelu(x, approximate="tanh")
        return torch.stack([tanh, *(function(x) for function in ACTIVATIONS)])

    x = ENDS.to(dtype)
    actual = rl.load(rl.export(Function(model), (x,), backend=backend, verify=False).buffer)(x)
    # Eager's vectors overflow for some numbers that float64 has no trouble with.
    near = [
        torch.isclose(actual.double(), wanted.double(), rtol=1e-2, atol=1e-37, equal_nan=True)
        for wanted in (model(x), model(x.double()).to(dtype))
    ]
    assert (near[0] | near[1]).all()
