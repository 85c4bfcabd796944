"""Outputs in the layout that the model asks for, whatever layout its inputs and weights have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.edge import EdgeCompileConfig


class Pixels(torch.nn.Module):
    """Two convolutions, with a copy into row-major order after one of them, or both."""

    def __init__(self, both: bool) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 5, 3)
        self.both = both

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        if self.both:
            x = x.contiguous()
        return torch.clone(self.second(x), memory_format=torch.contiguous_format)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
@pytest.mark.parametrize("weights", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("both", [False, True])
def test_contiguous_outputs_are_row_major(
    both: bool, weights: torch.memory_format, backend: str
) -> None:
    model = Pixels(both).eval().to(memory_format=weights)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    module = rl.load(rl.export(model, (x,), backend=backend).buffer)
    result, eager = module(x.numpy()), model(x).detach().numpy()
    assert result.strides == eager.strides
    np.testing.assert_allclose(result, eager, rtol=1e-5, atol=1e-5)


class Turned(torch.nn.Module):
    """A row-major computation, whose result is copied, or cloned, into channels-last order."""

    def __init__(self, clones: bool) -> None:
        super().__init__()
        self.clones = clones

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sigmoid(x) + x
        if self.clones:
            return torch.clone(y, memory_format=torch.channels_last)
        return y.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("backend", ["portable", "cpu", "xnnpack"])
@pytest.mark.parametrize("clones", [False, True])
def test_channels_last_outputs_are_so(clones: bool, backend: str) -> None:
    x, model = torch.randn(2, 3, 4, 5), Turned(clones)
    program = rl.export(model, (x,), backend=backend)
    result, eager = rl.load(program.buffer)(x.numpy()), model(x).numpy()
    assert result.strides == eager.strides
    np.testing.assert_allclose(result, eager, rtol=1e-5, atol=1e-5)
    if backend == "xnnpack":
        assert "XnnpackBackend" in str(program.report())


class Copies(torch.nn.Module):
    """The sum of its input with itself in one layout, and in another."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + x
        return y.contiguous(), y.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_memory_formats_that_edge_keeps_are_lowered(layout: torch.memory_format) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=layout)
    config = EdgeCompileConfig(_skip_dim_order=True)
    edge = rl.to_edge(torch.export.export(Copies(), (x,)), compile_config=config)
    results = rl.load(edge.to_executorch().buffer)(x.numpy())
    for result, eager in zip(results, Copies()(x), strict=True):
        assert result.strides == eager.numpy().strides
        np.testing.assert_array_equal(result, eager.numpy())
