"""What a node of a graph is, and what is beside it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from rushlight.errors import Code, ExportError

PERM_NCHW_TO_NHWC = [0, 2, 3, 1]
PERM_NHWC_TO_NCHW = [0, 3, 1, 2]


def check_or_raise(condition: bool, err: str) -> None:
    """Raise an error unless a condition holds.

    Args:
        condition: the condition.
        err: the error's text.

    Raises:
        ExportError: the condition is false.
    """
    if not condition:
        raise ExportError(err, code=Code.INVALID_ARGUMENT)


def is_node(node: Any) -> bool:
    """Whether an argument of a call is a node, and no number, list or None."""
    return isinstance(node, Node)


def is_getitem(node: Node) -> bool:
    """Whether a node takes one of several results of a call."""
    return node.op == "call_function" and node.target is operator.getitem


def get_input_node(node: Node, input_index: int) -> Any:
    """The positional argument of a call with this index."""
    return node.args[input_index]


def normalize_mean_dims(mean_dims: Sequence[int] | int | None, rank: int) -> list[int]:
    """The dimensions that a call reduces as indices from 0, in the order given; None means all.

    Args:
        mean_dims: the call's argument; negative dimensions count from the end.
        rank: the number of dimensions of its input.

    Raises:
        ValueError: the input has no dimensions, or has not one of these.
    """
    if rank <= 0:
        raise ValueError(f"the input has {rank} dimensions: it needs at least one")
    listed = [mean_dims] if isinstance(mean_dims, int) else mean_dims
    dims = range(rank) if listed is None else listed
    for dim in dims:
        if not -rank <= dim < rank:
            raise ValueError(
                f"dimension {dim} of an input with {rank}: allowed are {-rank} to {rank - 1}"
            )
    return [dim % rank for dim in dims]


def get_relu_fused_node(node: Node) -> Node | None:
    """The ReLU that alone reads a result, which a backend may fuse; None if there is none."""
    users = list(node.users)
    is_fused = len(users) == 1 and users[0].target == torch.ops.aten.relu.default
    return users[0] if is_fused else None


def get_source_fn(node: Node) -> Any:
    """The function or class of modules that a call comes from, as captures for training record it
    in `source_fn_stack`; None if it is not recorded."""
    stack = node.meta.get("source_fn_stack") if node.op == "call_function" else None
    return stack[-1][1] if stack else None
