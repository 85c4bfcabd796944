"""Remove assertions that are checked elsewhere, and copies of values that nothing can write.

What an assertion says about the inputs is in the shape contract, which is checked before a run.
What it says about computed values stays an instruction: eager would raise, so the program does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from rushlight.ir.bounds import Bounds
from rushlight.ir.rewrite import replace
from rushlight.ir.source import source_of
from rushlight.ir.symbols import in_words

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
    names: Mapping[str, str] | None = None,
    *,
    keep: bool = True,
) -> None:
    """Erase assertions that are checked elsewhere; let users of an identity use its input.

    Args:
        graph: changed in place.
        told: the symbols that the inputs tell; the contract checks what is only about them.
        bounds: of the program's sizes; a count within its bounds needs no assertion.
        names: of symbols, for the messages of what stays.
        keep: False erases all assertions.
    """
    counts = bounds.counts if bounds is not None else {}
    for node in list(graph.nodes):
        scalar = node.target is aten._assert_scalar.default
        done = not keep or (
            scalar and (_about_offset(node.args[0]) or _holds(node.args[0], told, counts))
        )
        if node.target in _SETTLED or (node.target in _ASSERTS and done):
            graph.erase_node(node)
        elif node.target in _IDENTITIES:
            replace(node, node.args[0])
        elif node.target in _ASSERTS:
            _name_line(node)
            if scalar:
                _name_symbols(node, names or {})


def _name_line(node: Node) -> None:
    """Give an assertion the line of what it is about: torch writes most of them itself."""
    about: Node | None = node
    while about is not None and not source_of(about).is_users:
        about = next(iter(about.all_input_nodes), None)
    if about is not None and "stack_trace" in about.meta:
        node.meta["stack_trace"] = about.meta["stack_trace"]


def _name_symbols(node: Node, names: Mapping[str, str]) -> None:
    """Say in the user's names what a scalar assertion demands: torch wrote its own symbols."""
    condition = node.args[0]
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    if isinstance(value, torch.SymBool):
        node.args = (condition, in_words(value.node.expr, names))


def _about_offset(condition: object) -> bool:
    """Whether it is about where torch's own view of unknown bounds begins: ours is a copy."""
    inputs = condition.all_input_nodes if isinstance(condition, Node) else []
    return bool(inputs) and all(
        n.target is aten.sym_storage_offset.default
        and n.meta["val"].node.expr in n.all_input_nodes[0].meta.get("unbacked_bindings", {})
        for n in inputs
    )


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
