"""The description of an operator in XNNPACK's table, and helpers for its arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Node

from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.integers import Arithmetic
from rushlight.ir.operators import arguments
from rushlight.partition import operators

__all__ = [
    "SEVERAL_DYNAMIC",
    "Arithmetic",
    "Operator",
    "arguments",
    "dims_of",
    "is_depthwise_conv",
    "pair",
    "used_results",
]

SEVERAL_DYNAMIC = "several of its sizes are dynamic, and XNNPACK's reshapes infer one"

COMPUTED = ", and XNNPACK packs weights when a program is loaded"
"""The end of the reason why it takes no computed weights, for `needs_constants`."""


@dataclass(frozen=True)
class Operator(operators.Operator[Builder]):
    """An operator that XNNPACK has.

    Attributes:
        moves: whether it makes a view or another order of a value, which alone is not worth a
            delegate: no node, or one that others take over.
        integers: how it is computed in integers, or a function of the call if that depends on its
            arguments; None if it is not.
    """

    moves: bool = False
    integers: Arithmetic | Callable[[Node], Arithmetic | None] | None = None


def used_results(node: Node) -> set[int]:
    """The indices of the results of a call that are used."""
    gets = [u for u in node.users if u.target is operator.getitem and u.users]
    return {int(u.args[1]) for u in gets}  # type: ignore[arg-type]


def pair(numbers: int | Sequence[int]) -> list[int]:
    """The numbers as a list of two; a single number is used for both."""
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    return listed * 2 if len(listed) == 1 else listed


def is_depthwise_conv(
    kernel_shape: Sequence[int], groups: int = 1, is_transpose: bool = False
) -> bool:
    """Whether every group of a convolution has one input channel.

    Args:
        kernel_shape: the sizes of the weights: [out, in / groups, …], or [in, out / groups, …] for
            a transposed convolution.
        groups: the number of groups.
        is_transpose: whether it is a transposed convolution.
    """
    if len(kernel_shape) < 2 or groups < 1:
        return False
    return (kernel_shape[0] // groups if is_transpose else kernel_shape[1]) == 1


def dims_of(dims: int | Sequence[int] | None, value: torch.Tensor) -> list[int]:
    """The dimensions as sorted nonnegative indices; all dimensions if none are given."""
    listed = [dims] if isinstance(dims, int) else list(dims or range(value.dim()))
    return sorted(d % value.dim() for d in listed)
