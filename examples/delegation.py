"""The three ways to hand a part of a model to a backend, with the demo backend.

python examples/delegation.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import rushlight as rl
from rushlight.backends.demo import AddMulPartitionerDemo
from rushlight.inspect import get_delegation_info, report_of
from rushlight.partition import CompileSpec, LoweredBackendModule, to_backend


class Sine(nn.Module):
    """A module that the backend takes as a whole."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)


class Composite(nn.Module):
    """A model with a lowered module in it."""

    def __init__(self, lowered: LoweredBackendModule) -> None:
        super().__init__()
        self.lowered = lowered

    def forward(self, x: Tensor) -> Tensor:
        return torch.cos(self.lowered(x)) - self.lowered(2 * x)


class AddMul(nn.Module):
    """Additions and products, with a subtraction between them."""

    def forward(self, a: Tensor, x: Tensor, b: Tensor) -> Tensor:
        y = torch.mm(a, x)
        z = y + b
        a = z - a
        y = torch.mm(a, x)
        return y + b


def whole(x: Tensor) -> LoweredBackendModule:
    """Flow 1: a backend takes a whole program; the result is a lowered module."""
    edge = rl.to_edge(torch.export.export(Sine(), (x,)))
    specs = [CompileSpec("max_value", bytes([1]))]
    lowered = to_backend("BackendWithCompilerDemo", edge.exported_program(), specs)
    print(lowered.processed_bytes.decode())
    file = lowered.buffer()
    same(rl.load(file)(x), torch.sin(x))
    print(f"1: the payload, {len(report_of(file).methods[0].delegates)} delegate, as eager")
    return lowered


def composed(lowered: LoweredBackendModule, x: Tensor) -> None:
    """Flow 2: a lowered module is a part of a model, which is exported and lowered with it."""
    edge = rl.to_edge(torch.export.export(Composite(lowered), (x,)))
    file = edge.to_executorch().buffer
    same(rl.load(file)(x), torch.cos(torch.sin(x)) - torch.sin(2 * x))
    [delegate] = report_of(file).methods[0].delegates
    assert len(delegate.calls) == 2
    print("2: one delegate, called twice, as eager")


def partitioned(args: tuple[Tensor, ...]) -> None:
    """Flow 3: a partitioner finds the nodes that its backend takes; the rest stays portable."""
    partitioner = AddMulPartitionerDemo()
    edge = rl.to_edge(torch.export.export(AddMul(), args))
    declined = partitioner.partition(edge.exported_program()).declined
    edge = rl.to_edge_transform_and_lower(
        torch.export.export(AddMul(), args), partitioner=[partitioner]
    )
    info = get_delegation_info(edge.exported_program().graph_module)
    same(rl.load(edge.to_executorch().buffer)(*args), AddMul()(*args))
    stays = ", ".join(str(node.target) for node in declined)
    print(f"3: {info.num_delegated_subgraphs} delegates, {stays} stays, as eager")
    for node, reason in declined.items():
        print(f"  {node.target}: {reason}")


def same(ours: Tensor, eager: Tensor) -> None:
    """Raises if the results differ."""
    torch.testing.assert_close(torch.as_tensor(ours), eager)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(3)
    composed(whole(x), x)
    partitioned((torch.randn(2, 2), torch.randn(2, 2), torch.randn(2, 2)))


if __name__ == "__main__":
    main()
