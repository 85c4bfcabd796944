"""Dynamic sizes: which the engine can compute from its inputs, and why it cannot compute others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from rushlight.backends.cpu.graph.expressions import Known, is_written
from rushlight.backends.cpu.graph.sizes import (
    Size,
    Sizes,
    at_bounds,
    limits,
    product,
    same,
    shape_of,
    size_of,
    sizes_of,
)
from rushlight.backends.cpu.tiles.clusters import is_elementwise, is_number
from rushlight.ir.bounds import Bounds
from rushlight.ir.custom_ops.adapter import adapter
from rushlight.ir.custom_ops.cached_attention import cached_attention
from rushlight.ir.operators import arguments
from rushlight.partition.operators import val_of
from rushlight.partition.partitioner import TAG
from rushlight.partition.tags import graphs_of
from rushlight.schema.cpu_engine import Limit

aten = torch.ops.aten

_TAKE_NUMBERS = {
    aten.view_copy.default,
    aten.expand_copy.default,
    aten.slice_copy.Tensor,
    aten.select_copy.int,
    aten.as_strided_copy.default,
    aten.split_with_sizes_copy.default,
    aten.constant_pad_nd.default,
    aten.native_layer_norm.default,
    aten.native_group_norm.default,
    aten.rms_norm.default,
    aten.full.default,
}
"""Operators among whose arguments may be sizes that are known only when the delegate runs."""

_PLACES: dict[Any, str] = {aten.slice_copy.Tensor: "start", aten.select_copy.int: "index"}
"""Arguments that count from the end if they are negative."""


class DynamicSizes:
    """The sizes of a program that depend on its inputs.

    Args:
        program: the program that is partitioned.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self._program = program
        self._size_reasons: dict[Any, str | None] = {}

    @cached_property
    def bounds(self) -> Bounds:
        """The ranges of sizes."""
        return Bounds.of(self._program)

    def why_not(self, node: Node, *, takes_numbers: bool = False) -> str | None:
        """Why the engine does not take a call because of its sizes; None if it does.

        Sizes that must be equal must be known to be equal for all inputs.

        Args:
            node: the call.
            takes_numbers: whether its arguments may be sizes that are known only at run time,
                beside those of operators that are known for it.
        """
        numbers = [n for n in node.all_input_nodes if is_number(n)]
        takes_numbers = takes_numbers or node.target in _TAKE_NUMBERS or is_number(node)
        if numbers and not takes_numbers:
            return f"its argument {numbers[0].name} is known only at run time"
        for one in (*node.all_input_nodes, node):
            for size in _numbers_of(one):
                reason = self._why_not_size(size, one)
                if reason is not None:
                    return reason
            if self._elements(one) > Limit.ELEMENTS:
                return f"{one.name} has more than {int(Limit.ELEMENTS)} elements"
        if node.target in _PLACES:
            reason = self._why_not_place(node)
            if reason is not None:
                return reason
        for a, b in _alike(node):
            if not same(a, b):
                return f"its sizes {a} and {b} may differ"
        return None

    def _elements(self, node: Node) -> int:
        """The elements of a value's largest tensor; a size of 0 counts as 1, as for readers."""
        tensors = [v for v in pytree.tree_leaves(node.meta["val"]) if isinstance(v, torch.Tensor)]
        shapes = (shape_of(tensor) for tensor in tensors)
        counts = (math.prod(max(at_bounds(n, self.bounds), 1) for n in shape) for shape in shapes)
        return max(counts, default=0)

    def _why_not_place(self, node: Node) -> str | None:
        """Why the engine does not take the place of a slice or of an index; None if it does."""
        args = arguments(node)
        name = _PLACES[node.target]
        place = size_of(args[name] or 0)
        low, _ = limits(place, self.bounds)
        if not isinstance(place, int) and (low is None or low < 0):
            return f"its {name} may count from the start or from the end"
        source = shape_of(args["self"])[args["dim"]]
        is_slice = node.target is aten.slice_copy.Tensor
        size = shape_of(node)[args["dim"]] if is_slice else 1
        first, there, taken = (at_bounds(s, self.bounds) for s in (place, source, size))
        last = max(first, 0) + (taken - 1) * args.get("step", 1)
        if taken > 0 and last >= there:
            return f"it reads beyond the size {source} where all inputs are largest"
        return None

    def _why_not_size(self, size: Any, node: Node) -> str | None:
        if isinstance(size, int):
            return None
        key = (size.node.expr, is_number(node))
        if key not in self._size_reasons:
            self._size_reasons[key] = self._look_at(size, may_be_negative=is_number(node))
        return self._size_reasons[key]

    def _look_at(self, number: Any, *, may_be_negative: bool) -> str | None:
        if free_unbacked_symbols(number):
            return "it has a size that depends on the values of a tensor"
        size = size_of(number)
        if not is_written(size):
            return f"the engine cannot compute the size {size}"
        for symbol in sorted(getattr(size, "free_symbols", ()), key=str):
            if limits(symbol, self.bounds)[1] is None:
                return f"its size {size} {self._unbounded(symbol)}"
        if at_bounds(size, self.bounds) < 0 and not may_be_negative:
            return f"its size {size} is negative where all inputs are largest"
        return None

    def _unbounded(self, symbol: sympy.Symbol) -> str:
        """The message for a symbol without a maximum: an integer among the inputs. (Tensors with
        such a size are refused before a program is partitioned.)"""
        for node in self._program.graph.find_nodes(op="placeholder"):
            if is_number(node) and size_of(node) == symbol:
                name = node.name
                return f"follows from {name}, which has no maximum: torch._check({name} <= 64)"
        return f"follows from {symbol}, which has no maximum"


def _numbers_of(node: Node) -> Iterator[Any]:
    """The sizes of a node's tensors, or the number that it is."""
    for value in pytree.tree_leaves(node.meta.get("val")):
        if isinstance(value, torch.Tensor):
            yield from value.shape
        elif isinstance(value, int | torch.SymInt):
            yield value


def _alike(node: Node) -> Iterator[tuple[Size, Size]]:
    """Sizes that must be equal."""
    if is_number(node):
        return
    if is_elementwise(node):
        for one in node.all_input_nodes:
            yield from _repeated(shape_of(one), shape_of(node))
    elif node.target is aten.cat.default:
        args = arguments(node)
        shape = shape_of(node)
        dim = args["dim"] % len(shape)
        for one in args["tensors"]:
            pairs = enumerate(zip(shape_of(one), shape, strict=False))
            yield from (pair for d, pair in pairs if d != dim and len(shape_of(one)) == len(shape))
    elif node.target in (aten.bmm.default, aten.mm.default):
        left, right = (shape_of(arg) for arg in node.args)
        yield from zip((*left[:-2], left[-1]), right[:-1], strict=True)
    elif node.target is aten.scaled_dot_product_attention.default:
        yield from _alike_in_attention(arguments(node))
    elif node.target is cached_attention:
        tokens = shape_of(node)[0]
        yield from ((tokens, shape_of(one)[0]) for one in node.all_input_nodes)
    elif node.target is adapter:
        result, x, sequences = (shape_of(one) for one in node.args[:3])
        yield from zip(result[:-1], x[:-1], strict=True)
        yield product(result[:-1]), sequences[0]


def _alike_in_attention(args: dict[str, Any]) -> Iterator[tuple[Size, Size]]:
    q, k, v = (shape_of(args[name]) for name in ("query", "key", "value"))
    yield from ((q[0], k[0]), (q[0], v[0]), (k[1], v[1]), (k[2], v[2]), (q[3], k[3]))
    if args["attn_mask"] is not None:
        yield from _repeated(shape_of(args["attn_mask"]), (*q[:3], k[2]))


def _repeated(shape: Sizes, to: Sizes) -> Iterator[tuple[Size, Size]]:
    """Sizes that must be equal for a tensor to be broadcast."""
    behind = to[len(to) - len(shape) :]
    yield from (pair for pair in zip(shape, behind, strict=True) if pair[0] != 1)


def hidden_sizes(program: ExportedProgram) -> dict[Node, str]:
    """The tagged calls whose sizes do not follow from their partition's inputs, and why."""
    hidden: dict[Node, str] = {}
    for module in graphs_of(program):
        parts: dict[str, list[Node]] = {}
        for node in module.graph.nodes:
            if node.op == "call_function" and TAG in node.meta:
                parts.setdefault(node.meta[TAG], []).append(node)
        for nodes in parts.values():
            hidden.update(_hidden_in(nodes))
    return hidden


def _hidden_in(nodes: list[Node]) -> Iterator[tuple[Node, str]]:
    sizes = {node: sizes_of(_numbers_of(node)) for node in nodes}
    if all(isinstance(size, int) for shape in sizes.values() for size in shape):
        return
    used = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in sizes)
    known = Known([size_of(n) if is_number(n) else shape_of(val_of(n)) for n in used])
    for node, shape in sizes.items():
        hidden = [size for size in shape if not known.tells(size)]
        if hidden:
            yield node, f"its size {hidden[0]} does not follow from the sizes of its inputs"
