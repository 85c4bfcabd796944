"""Inputs of another shape than the example's, to check a program with dynamic shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from rushlight.ir.bounds import Bounds

_LARGEST = 1 << 24  # elements of one input; a larger one would make the check slow


def other_inputs(program: ExportedProgram) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """At most one set of inputs whose dynamic sizes differ from the example's.

    Every symbol takes its least value that is above one, or its greatest where the example already
    has the least; derived sizes follow.
    """
    bounds = Bounds.of(program)
    if not program.range_constraints or program.example_inputs is None:
        return
    placeholders = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    values = [placeholders.get(s.arg.name) for s in specs]
    examples, tree = pytree.tree_flatten(program.example_inputs)
    chosen = _choose(values, examples, bounds)
    if not chosen:
        return
    inputs = []
    for value, given in zip(values, examples, strict=True):
        if not isinstance(value, torch.Tensor) or not isinstance(given, torch.Tensor):
            inputs.append(given)
            continue
        shape = [_at(size, chosen) for size in value.shape]
        inputs.append(_resized(given, shape))
    if all(i.numel() <= _LARGEST for i in inputs if isinstance(i, torch.Tensor)):
        yield pytree.tree_unflatten(inputs, tree)


def _choose(values: list[Any], examples: list[Any], bounds: Bounds) -> dict[sympy.Symbol, int]:
    chosen: dict[sympy.Symbol, int] = {}
    for value, given in zip(values, examples, strict=True):
        if not isinstance(value, torch.Tensor):
            continue
        for size, actual in zip(value.shape, given.shape, strict=True):
            expr = size.node.expr if isinstance(size, torch.SymInt) else None
            if expr is None or not expr.is_Symbol or expr in chosen:
                continue
            low, high = bounds.interval(size)
            least = max(low, 2)
            chosen[expr] = least if actual != least or high is None else max(high, least)
            if high is not None:
                chosen[expr] = min(chosen[expr], high)
    return chosen


def _at(size: int | torch.SymInt, chosen: dict[sympy.Symbol, int]) -> int:
    return size if isinstance(size, int) else int(size.node.expr.subs(chosen))


def _resized(tensor: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """`tensor`'s elements, repeated or cut to `shape`: values stay in their range."""
    if tensor.numel() == 0:
        return tensor.new_zeros(shape)
    count = torch.Size(shape).numel()
    repeats = -(-count // tensor.numel())
    return tensor.reshape(-1).repeat(repeats)[:count].reshape(shape).contiguous()
