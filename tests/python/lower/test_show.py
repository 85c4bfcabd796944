"""A finished method as a program that runs in Python, compared with eager."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.backends.demo import AddMulPartitionerDemo


class Model(nn.Module):
    """Views of several kinds, operators of several results, and state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.conv(x)
        self.state.add_(y.sum((0, 2, 3)))
        most = torch.topk(y, 2).values
        a, b = torch.split(y.permute(0, 2, 3, 1).reshape(-1, 4), 2, 1)
        return y.reshape(-1) * 2, most, a + 1, b, self.state + 0


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_finished_program_runs_in_python(layout: torch.memory_format) -> None:
    model = Model().eval()
    x = torch.randn(1, 3, 8, 8).to(memory_format=layout)
    manager = rl.to_edge(torch.export.export(copy.deepcopy(model), (x,)))
    with torch.no_grad():
        finished = manager.to_executorch().exported_program().module()
        for _ in range(2):  # the state goes on
            torch.testing.assert_close(finished(x), model(x))


def test_with_sizes_below_their_bounds() -> None:
    class Flat(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1).view(-1, 2) * 2

    shapes = ({0: torch.export.Dim("b", max=8)},)
    captured = torch.export.export(Flat(), (torch.randn(2, 4),), dynamic_shapes=shapes)
    program = rl.to_edge(captured).to_executorch().exported_program()
    x = torch.randn(5, 4)
    torch.testing.assert_close(program.module()(x), Flat()(x))


def test_delegates_are_called() -> None:
    class Sum(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.sigmoid(x + y), x - y

    x, y = torch.randn(2, 3), torch.randn(2, 3)
    captured = torch.export.export(Sum(), (x, y))
    manager = rl.to_edge(captured).to_backend(AddMulPartitionerDemo())
    program = manager.to_executorch().exported_program()
    assert "executorch_call_delegate(lowered_module_0" in program.graph_module.code
    torch.testing.assert_close(program.module()(x, y), Sum()(x, y))
