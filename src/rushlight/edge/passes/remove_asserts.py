"""Remove assertions that are checked elsewhere, and copies of values that nothing can write.

Assertions about the inputs are in the shape contract, which is checked before a run. Assertions
about computed values stay as instructions: eager would raise there, so the program does too.
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
from rushlight.ir.source import in_users_code, source_of
from rushlight.ir.symbols import in_words

aten = torch.ops.aten
# Checked when the program was captured, or repeated by an `_assert_scalar` beside it.
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
        told: the symbols whose values follow from the inputs; the contract checks conditions that
            use only these.
        bounds: the bounds of the program's sizes; a count within its bounds needs no assertion.
        names: the user's names of symbols, for the messages of the assertions that stay.
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
    """Give an assertion the user's line that computes its operand: torch adds most of them."""
    about: Node | None = node
    while about is not None and not in_users_code(source_of(about).file):
        about = next(iter(about.all_input_nodes), None)
    if about is not None and "stack_trace" in about.meta:
        node.meta["stack_trace"] = about.meta["stack_trace"]


def _name_symbols(node: Node, names: Mapping[str, str]) -> None:
    """Write a scalar assertion's message with the user's names instead of torch's symbols."""
    condition = node.args[0]
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    if isinstance(value, torch.SymBool):
        node.args = (condition, in_words(value.node.expr, names))


def _about_offset(condition: object) -> bool:
    """Whether a condition is only about storage offsets of views with unknown bounds.

    Torch checks them for its views; here such a view is a copy.
    """
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
    """Whether the contract checks the condition, or it always holds."""
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
