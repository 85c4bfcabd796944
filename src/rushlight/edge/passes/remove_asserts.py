"""Remove assertions that are checked elsewhere, and copies of values that nothing can write.

What an assertion says about the inputs is in the shape contract, which is checked before a run.
What it says about computed values stays an instruction: eager would raise, so the program does.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.ir.bounds import Bounds
from rushlight.ir.rewrite import replace
from rushlight.ir.source import source_of

aten = torch.ops.aten
# Settled when the program was captured, or said once more by an `_assert_scalar` beside it.
_SETTLED = {
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
}
_ASSERTS = {
    aten._assert_scalar.default,
    aten._assert_async.default,
    aten._assert_async.msg,
}
_IDENTITIES = {
    aten.lift_fresh_copy.default,
    aten.alias.default,
    aten.alias_copy.default,
    aten.detach.default,
    aten.detach_copy.default,
}


def remove_asserts(
    graph: Graph,
    told: Collection[sympy.Symbol] = (),
    bounds: Bounds | None = None,
    *,
    keep: bool = True,
) -> None:
    """Erase assertions that are checked elsewhere; let users of an identity use its input.

    Args:
        graph: changed in place.
        told: the symbols that the inputs tell; the contract checks what is only about them.
        bounds: of the program's sizes.
        keep: False erases all assertions.
    """
    counts = _counts(graph, bounds or Bounds({}))
    for node in list(graph.nodes):
        scalar = node.target is aten._assert_scalar.default
        done = not keep or (scalar and _holds(node.args[0], told, counts))
        if node.target in _SETTLED or (node.target in _ASSERTS and done):
            graph.erase_node(node)
        elif node.target in _IDENTITIES:
            replace(node, node.args[0])
        elif node.target in _ASSERTS:
            _name_line(node)


def _counts(graph: Graph, bounds: Bounds) -> dict[sympy.Expr, ValueRanges[Any]]:
    """Sizes that count elements, which cannot be more than there are: of these torch asserts it."""
    found: dict[sympy.Expr, ValueRanges[Any]] = {}
    for node in graph.nodes:
        counted = _counted(node)
        if not counted:
            continue
        shapes = [[bounds.interval(s)[1] for s in one.meta["val"].shape] for one in counted]
        if any(None in shape for shape in shapes):
            continue
        most = math.prod(torch.broadcast_shapes(*shapes))
        own = free_unbacked_symbols(node.meta["val"])
        for given in node.all_input_nodes:
            own -= free_unbacked_symbols(given.meta["val"])
        found.update({symbol: ValueRanges(0, most) for symbol in own})
    return found


def _counted(node: Node) -> list[Node]:
    """The tensors whose true, other than zero, or different elements the result's size counts."""
    if node.target is aten.nonzero.default:
        return list(node.all_input_nodes)
    if node.target is aten.masked_select.default:
        return list(node.all_input_nodes)
    if node.target is aten._unique2.default or _all_consecutive(node):
        return list(node.all_input_nodes)
    if node.target is aten.index.Tensor:
        given: Any = node.args[1]
        masks = [i for i in given if i is not None and i.meta["val"].dtype == torch.bool]
        return masks if len(masks) == 1 else []
    return []


def _all_consecutive(node: Node) -> bool:
    """Whether the node picks what differs from its neighbour among all elements."""
    return node.target is aten.unique_consecutive.default and node.args[3:] in ((), (None,))


def _name_line(node: Node) -> None:
    """Give an assertion the line of what it is about: torch writes most of them itself."""
    about: Node | None = node
    while about is not None and not source_of(about).is_users:
        about = next(iter(about.all_input_nodes), None)
    if about is not None and "stack_trace" in about.meta:
        node.meta["stack_trace"] = about.meta["stack_trace"]


def _holds(
    condition: object,
    told: Collection[sympy.Symbol],
    counts: dict[sympy.Expr, ValueRanges[Any]],
) -> bool:
    """Whether the contract checks the condition, or it cannot but hold."""
    if not isinstance(condition, Node):
        return bool(condition)
    value = condition.meta.get("val")
    if not isinstance(value, torch.SymBool):
        return value is True
    expression = value.node.expr
    symbols = expression.free_symbols
    if not symbols:
        return bool(expression == sympy.true)
    if symbols <= set(told):
        return True
    return symbols <= counts.keys() and bound_sympy(expression, counts) == ValueRanges.wrap(True)
