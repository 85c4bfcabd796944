"""What a backend's compiler half knows of an operator, and checks that backends share.

A backend has a table from operators to `Operator`: its partitioner asks `why_not`, its `preprocess`
calls `translate`. What else a backend knows of an operator it adds in a subclass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch.fx import Node

from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments

Builder = TypeVar("Builder")
"""What makes the backend's own graph."""

IsConstant = Callable[[Any], bool]
"""Whether an argument of a call is a constant of the program."""

WhyNot = Callable[[Node, IsConstant], str | None]
"""Why a call is not taken, in words; None if it is."""

SIZES: frozenset[Callable[..., Any]] = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv),
        torch.ops.aten.sym_size.int,
    }
)
"""What computes with sizes."""


def always(node: Node, is_constant: IsConstant) -> str | None:
    """No reason against it."""
    return None


@dataclass(frozen=True)
class Operator(Generic[Builder]):
    """What a backend knows of an operator.

    Attributes:
        translate: adds a call to the backend's graph, and returns its value or a list of values.
        why_not: given the call and which of its arguments are constants, why it is not taken.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: WhyNot = always


def val_of(node: Any) -> torch.Tensor:
    """Sizes and dtype of a node's value."""
    val: torch.Tensor = node.meta["val"]
    return val


def needs_constants(*names: str, because: str) -> WhyNot:
    """Why not, if one of these arguments is computed.

    Args:
        names: the arguments; one that is left out is no reason.
        because: what the backend does with constants, as the error says it.
    """

    def why_not(node: Node, is_constant: IsConstant) -> str | None:
        args = arguments(node)
        for name in names:
            if args[name] is not None and not is_constant(args[name]):
                return f"its {name} is computed{because}"
        return None

    return why_not


def beyond_window(most: int, *numbers: int) -> str | None:
    """Why not, if a number of a window (its kernel, stride, padding, dilation) is more than `most`,
    which readers of the payload take."""
    greatest = max(numbers, default=0)
    if greatest <= most:
        return None
    return f"its window has the number {greatest}, and at most {most:d} is read"


def check_arguments(count: int, most: int) -> None:
    """Refuse a part with more arguments than readers of the payload take.

    Raises:
        ExportError: with the numbers.
    """
    if count > most:
        raise ExportError(
            f"a part of the program takes or gives {count} tensors, and at most {most:d} are "
            f"possible: export with backend='portable', or pass fewer, larger tensors",
            code=Code.NOT_SUPPORTED,
        )
