"""Helpers of the cpu backend's tests: lowering, comparison with eager, and a delegate's nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.backends.cpu import CpuPartitioner
from rushlight.partition import get_non_lowered_nodes
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import TileOp


def lowered(model: nn.Module, *args: Any) -> rl.EdgeProgramManager:
    exported = torch.export.export(model.eval(), args)
    return rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])


def operations(edge: rl.EdgeProgramManager) -> list[Any]:
    graphs = [fb.unpack(m.processed_bytes) for m in lowered_modules(edge.exported_program())]
    return [node.operation for graph in graphs for node in graph.nodes]


def operators_of(edge: rl.EdgeProgramManager) -> list[str]:
    """The nodes of all delegates, by type; those with an epilogue have a + at the end."""
    return [
        type(operation).__name__ + ("+" if getattr(operation, "epilogue", None) else "")
        for operation in operations(edge)
    ]


def instructions(model: nn.Module, *args: Any) -> list[TileOp]:
    """The instructions of all tile programs that are nodes of their own."""
    computed = operations(lowered(model, *args))
    programs = [one.program.code for one in computed if isinstance(one, fb.Elementwise)]
    return [TileOp(word & 0xFF) for code in programs for word in code[::3]]


def whole(model: nn.Module, *args: Any, tolerance: float = 1e-5) -> list[str]:
    """Compare the results with eager's, relative to the greatest; returns the delegate's nodes.

    There must be one delegate, and no call outside it.
    """
    edge = lowered(model, *args)
    left = {
        n.name: n.meta.get("declined") for n in get_non_lowered_nodes(edge.exported_program().graph)
    }
    assert not left
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=2)
    with torch.no_grad():
        equal(module(*args), model(*args), tolerance)
        equal(module(*args), model(*args), tolerance)  # once more, with scratch that was used
    return operators_of(edge)


def follows(
    model: nn.Module,
    sizes: Any,
    *calls: tuple[Any, ...],
    tolerance: float = 1e-5,
    left: Collection[str] = (),
) -> list[str]:
    """Compare a program with dynamic sizes with eager for each call, in this order and back.

    Args:
        model: the model.
        sizes: `dynamic_shapes`, for each input.
        calls: the arguments of each call; the model is captured with the first.
        tolerance: the error that is allowed, relative to the greatest result.
        left: operators that stay outside delegates.

    Returns:
        The nodes of the delegates.
    """
    sizes = (tuple(sizes),) if isinstance(model, Call) else tuple(sizes)
    exported = torch.export.export(model.eval(), calls[0], dynamic_shapes=sizes)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    program = edge.exported_program()
    outside = {n.name: n for n in get_non_lowered_nodes(program.graph)}
    declined = {k: n.meta.get("declined") for k, n in outside.items() if str(n.target) not in left}
    assert not declined
    for part in lowered_modules(program):
        assert fb.unpack(part.processed_bytes).version == 2
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True, threads=2)
    with torch.no_grad():
        for args in (*calls, *reversed(calls)):
            equal(module(*args), model(*args), tolerance)
    return operators_of(edge)


def equal(ours: Any, eager: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(flat(ours), flat(eager), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if not other.is_floating_point():
            assert torch.equal(one, other)
            continue
        finite = other[other.isfinite()].abs()
        scale = float(finite.max()) if finite.numel() else 1.0
        torch.testing.assert_close(
            one, other, rtol=tolerance, atol=tolerance * max(scale, 1e-6), equal_nan=True
        )


class Call(nn.Module):
    """A function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def call(function: Callable[..., Any], *inputs: torch.Tensor) -> list[str]:
    return whole(Call(function), *inputs)


_DRAW = torch.Generator().manual_seed(0)
IMAGE = torch.randn(2, 6, 9, 11, generator=_DRAW)
LAST = IMAGE.to(memory_format=torch.channels_last)
X = torch.randn(3, 5, 7, generator=_DRAW)
