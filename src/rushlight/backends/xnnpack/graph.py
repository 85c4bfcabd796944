"""A payload's graph while it is built: stored tensors, nodes over them, and values in them.

XNNPACK's tensors are dense and row-major. A value of the torch graph is a stored tensor together
with the order in which its dimensions are stored. A permutation only changes that order; a node
that moves elements is added only where a call needs an order that the value does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sympy
import torch
from torch.fx import Node

from rushlight.ir.bounds import Size
from rushlight.schema import xnnpack as fb

Order = tuple[int, ...]

NHWC: Order = (0, 2, 3, 1)
UNLIMITED = (-float("inf"), float("inf"))
DATATYPES = {torch.float32: fb.Datatype.FP32, torch.float16: fb.Datatype.FP16}


def identity(rank: int) -> Order:
    """The row-major order."""
    return tuple(range(rank))


def key_of(size: Size) -> int | sympy.Expr:
    """A key that is equal for equal sizes."""
    return size if isinstance(size, int) else size.node.expr


def keys_of(sizes: Sequence[Size]) -> tuple[int | sympy.Expr, ...]:
    """`key_of` of each size."""
    return tuple(key_of(size) for size in sizes)


def is_one(size: Size) -> bool:
    """Whether a size is always 1."""
    return isinstance(size, int) and size == 1


def dynamic_sizes(sizes: Sequence[Size]) -> int:
    """The number of dynamic sizes."""
    return sum(not isinstance(size, int) for size in sizes)


class Elements(NamedTuple):
    """How the elements of a tensor are stored.

    Attributes:
        datatype: the datatype in the payload.
        quantization: scale and zero point of quantised elements; else None.
    """

    datatype: fb.Datatype
    quantization: fb.QuantParams | None = None


@dataclass(eq=False)
class Stored:
    """A tensor of the payload.

    Attributes:
        dims: its sizes, outermost first.
        datatype: the datatype of its elements.
        data: the elements of a constant; else None.
        quantization: scale and zero point of quantised elements; else None.
        scales: the scales of a constant with one for each channel or group; else None.
        external: the index of the delegate's argument that it is; else None.
        flags: `XNN_VALUE_FLAG_EXTERNAL_INPUT` for an argument that is read, `…_OUTPUT` for one that
            is written.
        node: the payload's node that computes it; None if no node does.
    """

    dims: list[Size]
    datatype: fb.Datatype
    data: torch.Tensor | None = None
    quantization: fb.QuantParams | None = None
    scales: torch.Tensor | None = None
    external: int | None = None
    flags: int = 0
    node: PayloadNode | None = None

    @property
    def elements(self) -> Elements:
        """How its elements are stored."""
        return Elements(self.datatype, self.quantization)


@dataclass(eq=False)
class PayloadNode:
    """A node of the payload.

    Attributes:
        operation: its fields, except the indices of tensors.
        inputs: {field: tensor}; None for an input that is left out.
        outputs: {field: tensor}.
        limits: the range to which the results are clamped.
        calls: the calls of the model that it computes.
    """

    operation: fb.NodeKind
    inputs: dict[str, Stored | None]
    outputs: dict[str, Stored]
    limits: tuple[float, float] = UNLIMITED
    calls: list[Node] = field(default_factory=list)

    def limit(self, low: float, high: float) -> None:
        """Clamp the results also to this range."""
        own_low, own_high = self.limits
        self.limits = min(max(own_low, low), high), max(min(own_high, high), low)


@dataclass(frozen=True, eq=False)
class Value:
    """A value of the torch graph.

    Attributes:
        stored: the tensor that holds it.
        shape: the value's own sizes.
        order: its dimensions in the order in which they are stored. A value without dimensions is
            stored as a tensor of one element.
    """

    stored: Stored
    shape: tuple[Size, ...]
    order: Order

    @property
    def rank(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def permuted(self, dims: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        dims = [d % self.rank for d in dims]
        shape = tuple(self.shape[d] for d in dims)
        return Value(self.stored, shape, tuple(dims.index(d) for d in self.order))


def order_after_view(value: Value, shape: Sequence[Any]) -> Order | None:
    """The order of a view of a value with another shape; None if there is no view.

    With dynamic sizes, only dimensions of size 1 may be added or dropped.
    """
    is_plain = value.order == identity(value.rank)
    if is_plain:
        return identity(len(shape))
    before = [d for d in range(value.rank) if not is_one(value.shape[d])]
    after = [d for d in range(len(shape)) if not is_one(shape[d])]
    if keys_of([value.shape[d] for d in before]) == keys_of([shape[d] for d in after]):
        ones = [d for d in range(len(shape)) if is_one(shape[d])]
        moved = [after[before.index(d)] for d in value.order if d in before]
        return (*moved, *ones)
    if dynamic_sizes(value.shape) or dynamic_sizes(shape):
        return None
    dense_strides, stride = [0] * value.rank, 1
    for dim in reversed(value.order):
        dense_strides[dim] = stride
        stride *= int(value.shape[dim])
    meta = torch.empty_strided([int(s) for s in value.shape], dense_strides, device="meta")
    try:
        strides = meta.view(list(shape)).stride()
    except RuntimeError:
        return None
    return tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], d)))
