"""Arguments of calls by their names in the schema."""

from __future__ import annotations

from typing import Any

from torch._ops import OpOverload
from torch.fx import Node

from rushlight.edge.operators import EdgeOpOverloadPacket, ops
from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments


def get_arg(node: Node, kwarg_name: str, expected_type: Any = None) -> Any:
    """The argument of a call, or its default.

    Args:
        node: the call of an operator.
        kwarg_name: the argument's name in the schema, "dim".
        expected_type: a class that the argument must be of; others are not checked.

    Raises:
        ExportError: there is no such argument, or it is of another type.
    """
    names = _names(node)
    if kwarg_name not in names:
        raise ExportError(
            f"{node.name}: {node.target} has no argument {kwarg_name!r}; it has {names}",
            code=Code.INVALID_ARGUMENT,
        )
    value = arguments(node)[kwarg_name]
    if isinstance(expected_type, type) and not isinstance(value, expected_type):
        raise ExportError(
            f"{node.name}: {kwarg_name} is {type(value).__name__}, not {expected_type.__name__}",
            code=Code.INVALID_TYPE,
        )
    return value


def set_arg(node: Node, kwarg_name: str, value: Any) -> None:
    """Set the argument of a call, given by its name in the schema; ExportError if it has none."""
    names = _names(node)
    if kwarg_name not in names:
        raise ExportError(
            f"{node.name}: {node.target} has no argument {kwarg_name!r}; it has {names}",
            code=Code.INVALID_ARGUMENT,
        )
    place = names.index(kwarg_name)
    if place < len(node.args):
        node.update_arg(place, value)
    else:
        node.update_kwarg(kwarg_name, value)


def _names(node: Node) -> list[str]:
    if not isinstance(node.target, OpOverload):
        raise ExportError(
            f"{node.name} is no call of an operator: its arguments have no names",
            code=Code.INVALID_ARGUMENT,
        )
    return [argument.name for argument in node.target._schema.arguments]


def get_edge_overload_packet(edge_op: OpOverload) -> EdgeOpOverloadPacket:
    """All overloads of an operator, as the Edge dialect has them."""
    namespace, _, name = edge_op._schema.name.partition("::")
    packet: EdgeOpOverloadPacket = getattr(getattr(ops.edge, namespace), name)
    return packet
