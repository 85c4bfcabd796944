"""Small models for the delegation tests, and checks of the files made from them."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

import rushlight as rl
from delegates import flat
from rushlight.edge import ExecutorchBackendConfig


def edge_of(model: torch.nn.Module, *args: Any) -> ExportedProgram:
    """The model in the Edge dialect."""
    return rl.to_edge(torch.export.export(model.eval(), args)).exported_program()


def runs_like(model: torch.nn.Module, manager: rl.EdgeProgramManager, *args: Any) -> bytes:
    """Check that the file computes eager's results, with payloads in segments and inside the
    program."""
    for segments in (True, False):
        config = ExecutorchBackendConfig(extract_delegate_segments=segments)
        file = manager.to_executorch(config).buffer
        actual = rl.load(file)(*arrays(args))
        for ours, eager in zip(flat(actual), flat(model(*args)), strict=True):
            torch.testing.assert_close(ours, eager)
    return file


def arrays(args: Any) -> Any:
    """The arguments with NumPy arrays in place of tensors."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.numpy(), args)


class AddMul(torch.nn.Module):
    """Additions and products with one subtraction between them."""

    def forward(self, a: torch.Tensor, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.mm(a, x)
        z = y + b
        a = z - a
        y = torch.mm(a, x)
        return y + b

    inputs = tuple(torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(0)))


class Sine(torch.nn.Module):
    """One operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Wrap(torch.nn.Module):
    """A model around a lowered module."""

    def __init__(self, lowered: torch.nn.Module) -> None:
        super().__init__()
        self.lowered = lowered

    def forward(self, *args: Any) -> Any:
        return self.lowered(*args)
