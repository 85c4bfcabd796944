"""Let calls write their results into their first arguments, where nothing reads these later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from rushlight.edge.operators import EdgeOpOverload, edge_operator
from rushlight.edge.to_edge import finish
from rushlight.errors import Code, ExportValueError
from rushlight.exir.planning.nodes import filter_nodes
from rushlight.ir.programs import inputs_not_written
from rushlight.ir.rewrite import insert, replace

DEFAULT_INPLACEABLE_OPS: frozenset[Any] = frozenset(
    {edge_operator(torch.ops.aten.index_put.default)}
)
"""The operators that `reinplace_pass` replaces if it is given none."""


def reinplace_pass(
    ep: ExportedProgram,
    ops_to_inplace: Iterable[Any] | None = None,
    inplace_overrides: Mapping[Any, Any] | None = None,
) -> ExportedProgram:
    """Replace functional calls by calls that write their first argument.

    A call is replaced if nothing after it reads that argument, the graph's outputs included; if the
    argument has the result's sizes and dtype, and is given once; and if it is no input of the
    program, or one that the program writes. `to_executorch` makes such calls functional again and
    plans memory itself: the pass serves graphs that a backend reads.

    Args:
        ep: of the Edge dialect; changed.
        ops_to_inplace: functional operators to replace; `DEFAULT_INPLACEABLE_OPS` if None. One of
            `aten` without a form that writes its first argument stays.
        inplace_overrides: operators with the ones that write, for operators outside `aten`.

    Returns:
        `ep`.

    Raises:
        ExportValueError: an operator of `inplace_overrides` is not the writing form of the other.
    """
    overrides = dict(inplace_overrides or {})
    wanted = DEFAULT_INPLACEABLE_OPS if ops_to_inplace is None else ops_to_inplace
    forms = {op: _writing_form(op) for op in wanted if op not in overrides}
    forms |= {op: _checked(op, form) for op, form in overrides.items()}
    own = inputs_not_written(ep)
    read_later: set[Node] = set()
    for node in reversed(list(ep.graph.nodes)):
        sources = node.all_input_nodes
        form = forms.get(node.target) if node.op == "call_function" else None
        if form is not None and _may_write(node, own, read_later):
            target = edge_operator(form) if isinstance(node.target, EdgeOpOverload) else form
            value = node.meta.get("val")
            replace(
                node, insert(ep.graph, target, node.args, dict(node.kwargs), like=node, value=value)
            )
        read_later.update(sources)
    finish(ep)
    return ep


def _writing_form(operator: OpOverload) -> OpOverload | None:
    """The operator of `aten` that writes its first argument, and has the same arguments."""
    namespace, _, name = operator._schema.name.partition("::")
    packet = getattr(torch.ops.aten, f"{name}_", None) if namespace == "aten" else None
    overloads = [getattr(packet, o) for o in packet.overloads()] if packet is not None else []
    return next((o for o in overloads if _writes_first(operator, o)), None)


def _writes_first(operator: OpOverload, form: OpOverload) -> bool:
    given, own = operator._schema.arguments, form._schema.arguments
    alias = own[0].alias_info if own else None
    return (
        [str(a.type) for a in given] == [str(a.type) for a in own]
        and alias is not None
        and alias.is_write
    )


def _checked(operator: OpOverload, form: OpOverload) -> OpOverload:
    named_so = form._schema.name.startswith(f"{operator._schema.name}_")
    if not named_so or not _writes_first(operator, form):
        raise ExportValueError(
            f"inplace_overrides: {form._schema} does not write the first argument of "
            f"{operator._schema}: give an operator of the same arguments whose first one is "
            f"Tensor(a!), named {operator._schema.name}_",
            code=Code.INVALID_ARGUMENT,
        )
    return form


def _may_write(node: Node, inputs: set[Node], read_later: set[Node]) -> bool:
    """Whether a call's first argument is in neither set, and may hold the call's result."""
    written = node.args[0]
    if not isinstance(written, Node) or written in inputs or written in read_later:
        return False
    if filter_nodes([node.args, dict(node.kwargs)]).count(written) > 1:
        return False  # the call would read what it has written
    held, result = written.meta.get("val"), node.meta.get("val")
    return (
        isinstance(held, torch.Tensor)
        and isinstance(result, torch.Tensor)
        and held.dtype == result.dtype
        and held.dim() == result.dim()
        and all(
            statically_known_true(a == b) for a, b in zip(held.shape, result.shape, strict=True)
        )
    )
