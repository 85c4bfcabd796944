"""How transposes and permutes order dimensions, and views that add or remove one of size 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from rushlight.edge.operators import ops
from rushlight.errors import Code, ExportError
from rushlight.exir.transforms.refresh import call_like
from rushlight.ir.branches import attribute

TRANSPOSE = ops.edge.aten.transpose_copy.int
PERMUTE = ops.edge.aten.permute_copy.default
VIEW = ops.edge.aten.view_copy.default
VIEWS = (VIEW, ops.edge.aten.view.default)
REORDERS = (TRANSPOSE, PERMUTE)


def get_shape(graph_module: GraphModule, node: Any) -> torch.Size | None:
    """The sizes of a node's tensor, [1] for a number, None if they are not known."""
    if isinstance(node, int | float):
        return torch.Size([1])
    value = node.meta.get("val")
    if value is None and node.op == "get_attr":
        value = attribute(node)
    return getattr(value, "shape", None)


def get_transposed_dims(node: Node, dims: Sequence[int]) -> list[int]:
    """`dims` in the order in which a transpose puts its input's dimensions."""
    _require(node, TRANSPOSE)
    new = list(dims)
    one, other = (_index(d, len(new)) for d in node.args[1:3])
    new[one], new[other] = new[other], new[one]
    return new


def get_permuted_dims(node: Node, dims: Sequence[int]) -> list[int]:
    """`dims` in the order in which a permute puts its input's dimensions."""
    _require(node, PERMUTE)
    order: Any = node.args[1] if len(node.args) > 1 else node.kwargs["dims"]
    return [dims[d] for d in order]


def _require(node: Node, target: Any) -> None:
    if node.target != target:
        raise ExportError(f"{node.name} is no {target.__name__}", code=Code.INVALID_ARGUMENT)


def _index(dim: Any, rank: int) -> int:
    return int(dim) + rank if dim < 0 else int(dim)


def reordered(node: Node, dims: Sequence[int]) -> list[int]:
    """`dims` as a transpose or permute orders them."""
    order = get_transposed_dims if node.target == TRANSPOSE else get_permuted_dims
    return order(node, dims)


def order_of(node: Node) -> list[int]:
    """For each dimension of a transpose's or permute's result, the input's."""
    return reordered(node, range(node.meta["val"].dim()))


def inverse(order: Sequence[int]) -> list[int]:
    """The order that undoes one."""
    return [list(order).index(i) for i in range(len(order))]


def extra_one(longer: Sequence[Any], shorter: Sequence[Any]) -> int | None:
    """Where sizes have a 1 that others lack: they are the same without it; None if not."""
    if len(longer) != len(shorter) + 1:
        return None
    for place, size in enumerate(longer):
        if size == 1 and [*longer[:place], *longer[place + 1 :]] == list(shorter):
            # Of several ones in a row, the last: what stands before it is equal in both.
            while place + 1 < len(longer) and longer[place + 1] == 1:
                place += 1
            return place
    return None


def size_arguments(source: Node, dims: Sequence[int | None], at: Node) -> list[Any]:
    """Sizes as arguments of a call that is inserted before `at`.

    Args:
        source: the tensor whose sizes they are.
        dims: its dimensions; None stands for a size of 1.
        at: where sizes that vary are asked for.
    """
    return [1 if d is None else _size(source, d, at) for d in dims]


def _size(source: Node, dim: int, at: Node) -> Any:
    size = source.meta["val"].shape[dim]
    if isinstance(size, int):
        return size
    return call_like(at, torch.ops.aten.sym_size.int, (source, dim))
