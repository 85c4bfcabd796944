"""Replace calls that write their first argument by functional ones.

Captured programs have no such calls; a pass of a user's may add them, `index_put_` on a buffer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.edge.to_edge import finish
from rushlight.ir.programs import copy_program, inputs_not_written
from rushlight.ir.rewrite import insert, replace
from rushlight.ir.verify import fail


def functional_calls(program: ExportedProgram, method: str) -> ExportedProgram:
    """The program with functional calls alone: itself, or a copy if some call writes.

    What reads a written value after the call, the graph's outputs included, reads the call's
    result.

    Args:
        program: of the Edge dialect; not changed.
        method: the method's name, for messages.

    Raises:
        ExportError: a call writes an input that the signature does not tell to be written.
    """
    if all(_functional(node) is None for node in program.graph.nodes):
        return program
    new = copy_program(program)
    kept = inputs_not_written(new)
    places = {node: place for place, node in enumerate(new.graph.nodes)}
    for node, place in list(places.items()):
        functional = _functional(node)
        if functional is None:
            continue
        written: Any = node.args[0]
        if written in kept and not _is_returned(written):
            told = (
                f"it writes {written.name}, which the program does not return as written: make it "
                f"a mutable buffer (create_mutable_buffer), or call {functional} and return it"
            )
            fail(new.graph, node, method, told)
        value = node.meta.get("val")
        call = insert(new.graph, functional, node.args, dict(node.kwargs), like=node, value=value)
        places[call] = place
        written.replace_all_uses_with(
            call, delete_user_cb=lambda user, p=place: places[user] > p, propagate_meta=False
        )
        replace(node, call)
    finish(new)
    return new


def _functional(node: Node) -> OpOverload | None:
    """The operator that returns what the node's operator writes; None for other nodes."""
    target = node.target
    if not isinstance(target, OpOverload) or not target._schema.is_mutable:
        return None
    namespace, _, name = target._schema.name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    functional = getattr(packet, target._overloadname, None)
    if not isinstance(functional, OpOverload) or functional._schema.is_mutable:
        return None
    is_same = _arguments(functional) == _arguments(target)
    return functional if is_same and len(functional._schema.returns) == 1 else None


def _arguments(target: OpOverload) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in target._schema.arguments]


def _is_returned(node: Node) -> bool:
    return any(user.op == "output" for user in node.users)
