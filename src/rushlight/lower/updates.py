"""Which calls may write a buffer of state in place instead of into a copy of it."""

from __future__ import annotations

import operator

import torch.utils._pytree as pytree
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from rushlight.ir.custom_ops.updates import in_place

Update = tuple[Node, int]
"""A call, and the number of an argument that it returns changed."""


def in_place_updates(program: ExportedProgram) -> frozenset[Update]:
    """The updates by calls of `ir.custom_ops.updates` whose result replaces a buffer that nothing
    reads later.

    A buffer may be updated by several calls, one after the other. They are in place if every value
    that the buffer has before an update is read only before it.

    Args:
        program: of the Edge dialect.
    """
    signature = program.graph_signature
    buffers = signature.inputs_to_buffers
    order = {node: i for i, node in enumerate(program.graph.nodes)}
    returned = program.graph.output_node().args[0]
    updates: set[Update] = set()
    for spec, value in zip(signature.output_specs, returned, strict=True):
        if spec.kind == OutputKind.BUFFER_MUTATION and isinstance(value, Node):
            chain, first = _updates_of(value)
            is_own = first.op == "placeholder" and buffers.get(first.name) == spec.target
            if is_own and all(_is_last_use(call, at, order) for call, at in chain):
                updates.update(chain)
    return frozenset(updates)


def _updates_of(value: Node) -> tuple[list[Update], Node]:
    """The updates that lead to a value, the last one first, and what they begin with."""
    chain = []
    while (update := _update_of(value)) is not None:
        chain.append(update)
        call, at = update
        before = call.args[at]
        assert isinstance(before, Node)
        value = before
    return chain, value


def _update_of(value: Node) -> Update | None:
    """The update that a value is the result of; None if it is of none."""
    call, result = value, 0
    if value.target is operator.getitem and isinstance(value.args[0], Node):
        call, result = value.args[0], value.args[1]  # type: ignore[assignment]
    how = in_place(call.target)
    if how is None or result < how.n_results:
        return None
    return call, how.written[result - how.n_results]


def _is_last_use(call: Node, at: int, order: dict[Node, int]) -> bool:
    """Whether nothing after a call, nor another argument of it, reads the value that it updates."""
    before = call.args[at]
    assert isinstance(before, Node)
    others = [argument for i, argument in enumerate(call.args) if i != at]
    others += call.kwargs.values()
    read = [node for node in pytree.tree_leaves(others) if node is before]
    return not read and all(order[user] <= order[call] for user in before.users)
