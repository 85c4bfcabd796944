"""Operators kept whole: which calls a backend wants, and which of them nobody took."""

import torch
from expecttest import assert_expected_inline
from partition_text import X, calls_in, tag_calls
from pass_text import text, traced
from torch.export import ExportedProgram
from torch.nn import functional as F

from rushlight.edge.config import EdgeCompileConfig
from rushlight.ir.programs import copy_program
from rushlight.ir.source import debug_handles
from rushlight.partition import Partitioner
from rushlight.partition.whole import left_whole, wanted_whole

aten = torch.ops.aten


class Wants(Partitioner):
    """Wants operators whole, but for calls of tensors of one dimension."""

    def __init__(self, *operators) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self._operators = operators

    def ops_to_not_decompose(self, ep):  # type: ignore[no-untyped-def]
        return self._operators, lambda node: node.meta["val"].dim() > 1


def model(x, y):  # type: ignore[no-untyped-def]
    return F.silu(x), F.hardswish(x).sin(), F.silu(y)


def wanted(program: ExportedProgram, *partitioners: Partitioner) -> set[str]:
    return wanted_whole(program, partitioners, EdgeCompileConfig())


def test_calls_that_a_partitioner_accepts_are_wanted() -> None:
    """`sin` would not be decomposed, `silu` of `y` has one dimension, `hardswish` nobody wants."""
    program = traced(model, X, torch.ones(2))
    names = wanted(program, Wants(aten.silu.default, aten.sin.default), Partitioner())
    shown = text(program, lambda node: "whole" if node.name in names else None)
    assert_expected_inline(
        shown,
        """\
x: float32[2, 2]
y: float32[2]
%1: float32[2, 2] = silu(x)  # whole
%2: float32[2, 2] = hardswish(x)
%3: float32[2, 2] = sin(%2)
%4: float32[2] = silu(y)
return [%1, %3, %4]
""",
    )


def test_each_partitioner_is_asked() -> None:
    program = traced(model, X, torch.ones(2))
    names = wanted(program, Wants(aten.silu.default), Wants(aten.hardswish.default))
    shown = text(program, lambda node: "whole" if node.name in names else None)
    assert_expected_inline(
        shown,
        """\
x: float32[2, 2]
y: float32[2]
%1: float32[2, 2] = silu(x)  # whole
%2: float32[2, 2] = hardswish(x)  # whole
%3: float32[2, 2] = sin(%2)
%4: float32[2] = silu(y)
return [%1, %3, %4]
""",
    )


def test_calls_in_no_partition_are_left() -> None:
    """Both kinds stayed whole, and `silu` was tagged."""
    captured = traced(model, X, X)
    names = wanted(captured, Wants(aten.silu.default, aten.hardswish.default))
    edge = copy_program(captured)
    handles = debug_handles(captured.graph)
    for node in calls_in(edge):
        node.meta["debug_handle"] = handles[node.name]
    tag_calls(edge, {"silu": "a"})
    left = left_whole(captured, edge, names)
    shown = text(captured, lambda node: "left" if node.name in left else None)
    assert_expected_inline(
        shown,
        """\
x: float32[2, 2]
y: float32[2, 2]
%1: float32[2, 2] = silu(x)
%2: float32[2, 2] = hardswish(x)  # left
%3: float32[2, 2] = sin(%2)
%4: float32[2, 2] = silu(y)
return [%1, %3, %4]
""",
    )
