"""Inputs of another shape than the example's, to check a program with dynamic shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from rushlight.ir.bounds import Bounds

_LARGEST = 1 << 24  # elements of one input; a larger one would make the check slow
_TRIED = 9

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
Chosen = dict[sympy.Symbol, int]


def other_inputs(program: ExportedProgram, accepts: Callable[[Inputs], bool]) -> Iterator[Inputs]:
    """Inputs whose dynamic sizes differ from the example's: one set with other sizes, and one with
    sizes of one where these are allowed, for which programs are wrong most often.

    Args:
        program: a captured program.
        accepts: whether the finished program takes these inputs, since only its contract knows how
            sizes depend on each other.
    """
    if not program.range_constraints or program.example_inputs is None:
        return
    bounds = Bounds.of(program)
    examples = _examples(program)
    for candidates in (_others(examples, bounds), _ones(examples, bounds)):
        for chosen in candidates:
            inputs = _inputs(program, chosen)
            if inputs is not None and accepts(inputs):
                yield inputs
                break


def _pairs(program: ExportedProgram) -> list[tuple[Any, Any]]:
    """(value in the captured program, example) of each flattened input."""
    placeholders = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    values = [placeholders.get(getattr(s.arg, "name", "")) for s in specs]
    return list(zip(values, pytree.tree_leaves(program.example_inputs), strict=True))


def _examples(program: ExportedProgram) -> Chosen:
    """The example's value of every symbol that stands alone as a size or an integer."""
    values: Chosen = {}
    for value, example in _pairs(program):
        sizes: Any = zip(value.shape, example.shape, strict=True) if _is_tensor(value) else ()
        for size, actual in [(value, example)] if isinstance(value, torch.SymInt) else sizes:
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                values.setdefault(size.node.expr, actual)
    return values


def _others(examples: Chosen, bounds: Bounds) -> Iterator[Chosen]:
    """The least sizes above one, then the greatest, then a few in which all sizes rise by one."""
    ranges = {s: bounds.interval_of(s) for s in examples}
    least = {s: max(low, 2) for s, (low, _) in ranges.items()}
    greatest = {s: least[s] if high is None else high for s, (_, high) in ranges.items()}
    following = [{s: least[s] + i for s in ranges} for i in range(1, _TRIED)]
    following += [{s: value + i for s, value in examples.items()} for i in range(1, _TRIED)]
    for chosen in (least, greatest, *following):
        if chosen != examples:
            yield {s: min(value, greatest[s]) for s, value in chosen.items()}


def _ones(examples: Chosen, bounds: Bounds) -> Iterator[Chosen]:
    small = {s: 1 for s in examples if bounds.interval_of(s)[0] <= 1}
    if small and {**examples, **small} != examples:
        yield {**examples, **small}
        for symbol in small:
            yield {**examples, symbol: 1}


def _inputs(program: ExportedProgram, chosen: Chosen) -> Inputs | None:
    """The example's values at the chosen sizes; None if a size has no value or is too large."""
    inputs: list[Any] = []
    try:
        for value, example in _pairs(program):
            if isinstance(value, torch.SymInt):
                inputs.append(_at(value, chosen))
            elif _is_tensor(value) and isinstance(example, torch.Tensor):
                inputs.append(_resized(example, [_at(size, chosen) for size in value.shape]))
            else:
                inputs.append(example)
    except (TypeError, RuntimeError, _TooLargeError):
        return None
    args, kwargs = pytree.tree_unflatten(inputs, pytree.tree_structure(program.example_inputs))
    return args, kwargs


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


class _TooLargeError(Exception):
    pass


def _at(size: int | torch.SymInt, chosen: Chosen) -> int:
    return size if isinstance(size, int) else int(size.node.expr.subs(chosen))


def _resized(tensor: torch.Tensor, shape: list[int]) -> torch.Tensor:
    """`tensor`'s elements, repeated or cut to `shape`: values stay in their range."""
    if tensor.numel() == 0:
        return tensor.new_zeros(shape)
    count = torch.Size(shape).numel()
    if count > _LARGEST:
        raise _TooLargeError
    repeats = -(-count // tensor.numel())
    return tensor.reshape(-1).repeat(repeats)[:count].reshape(shape).contiguous()
