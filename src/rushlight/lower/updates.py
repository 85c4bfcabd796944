"""Which calls may write a buffer of state in place instead of into a copy of it."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from rushlight.ir.custom_ops.updates import WRITTEN, in_place


def in_place_updates(program: ExportedProgram) -> frozenset[Node]:
    """The calls of `ir.custom_ops.updates` whose result replaces a buffer that nothing reads later.

    A buffer may be updated by several calls, one after the other. They are in place if every value
    that the buffer has before an update is read only before it.

    Args:
        program: of the Edge dialect.
    """
    signature = program.graph_signature
    buffers = signature.inputs_to_buffers
    order = {node: i for i, node in enumerate(program.graph.nodes)}
    returned = program.graph.output_node().args[0]
    updates: set[Node] = set()
    for spec, value in zip(signature.output_specs, returned, strict=True):
        if spec.kind == OutputKind.BUFFER_MUTATION and isinstance(value, Node):
            chain, first = _updates_of(value)
            is_own = first.op == "placeholder" and buffers.get(first.name) == spec.target
            if is_own and all(_is_last_use(call, order) for call in chain):
                updates.update(chain)
    return frozenset(updates)


def _updates_of(value: Node) -> tuple[list[Node], Node]:
    """The updates that lead to a value, the last one first, and what they begin with."""
    chain = []
    while in_place(value.target) is not None:
        chain.append(value)
        before = value.args[WRITTEN]
        assert isinstance(before, Node)
        value = before
    return chain, value


def _is_last_use(call: Node, order: dict[Node, int]) -> bool:
    """Whether nothing after a call, nor another argument of it, reads the value that it updates."""
    before = call.args[WRITTEN]
    assert isinstance(before, Node)
    others = [argument for i, argument in enumerate(call.args) if i != WRITTEN]
    return before not in others and all(order[user] <= order[call] for user in before.users)
