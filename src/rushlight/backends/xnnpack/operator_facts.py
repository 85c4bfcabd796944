"""What XNNPACK knows of an operator."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.operators.facts import beyond_window, val_of
from rushlight.backends.xnnpack.build import Builder
from rushlight.backends.xnnpack.integers import Arithmetic
from rushlight.ir.operators import arguments

__all__ = [
    "SEVERAL_DYNAMIC",
    "Arithmetic",
    "Operator",
    "arguments",
    "beyond_window",
    "dims_of",
    "needs_constants",
    "pair",
    "used_results",
    "val_of",
]

SEVERAL_DYNAMIC = "several of its sizes are dynamic, and XNNPACK's reshapes infer one"

WhyNot = Callable[[Node, Callable[[Any], bool]], str | None]


def always(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    """No reason against it."""
    return None


@dataclass(frozen=True)
class Operator:
    """What XNNPACK knows of an operator.

    Attributes:
        translate: makes the steps of a call, and returns its value or a list of values.
        why_not: given the call and which of its arguments are constants, why it is not taken.
        moves: it only moves elements, which by itself is not worth a delegate.
        integers: how it is computed in integers, of a call if that depends on arguments; None if it
            is not.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: WhyNot = always
    moves: bool = False
    integers: Arithmetic | Callable[[Node], Arithmetic | None] | None = None


def needs_constants(node: Node, is_constant: Callable[[Any], bool], *names: str) -> str | None:
    """Why not, if one of these arguments is computed."""
    args = arguments(node)
    for name in names:
        if args[name] is not None and not is_constant(args[name]):
            return f"its {name} is computed, and XNNPACK packs weights when a program is loaded"
    return None


def used_results(node: Node) -> set[int]:
    """Which results of a call are used."""
    gets = [u for u in node.users if u.target is operator.getitem and u.users]
    return {int(u.args[1]) for u in gets}  # type: ignore[arg-type]


def pair(numbers: int | Sequence[int]) -> list[int]:
    """Two numbers, of which one may stand for both."""
    listed = [numbers] if isinstance(numbers, int) else list(numbers)
    return listed * 2 if len(listed) == 1 else listed


def dims_of(dims: int | Sequence[int] | None, value: torch.Tensor) -> list[int]:
    """Dimensions counted from the first, in order; all if none are given."""
    listed = [dims] if isinstance(dims, int) else list(dims or range(value.dim()))
    return sorted(d % value.dim() for d in listed)
