"""What the engine knows of an operator that is a step of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.rewrite import HALVES
from rushlight.errors import Code, ExportError
from rushlight.ir.operators import arguments
from rushlight.schema.cpu_engine import Limit

REALS = (torch.float32, *HALVES)
"""What the engine computes, in float32."""

WhyNot = Callable[[Node, Callable[[Any], bool]], str | None]


def always(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    """No reason against it."""
    return None


@dataclass(frozen=True)
class Operator:
    """What the engine knows of an operator.

    Attributes:
        translate: makes the steps of a call, and returns its value: a view or a list of them.
        why_not: given the call and which of its arguments are constants, why it is not taken.
    """

    translate: Callable[[Builder, Node], Any]
    why_not: WhyNot = always


def is_replaced(b: Builder, node: Node) -> Any:
    """Of calls that patterns leave none of."""
    raise AssertionError(f"{node.name} is replaced before steps are made")


def val_of(node: Any) -> torch.Tensor:
    """Sizes and dtype of a node's value."""
    val: torch.Tensor = node.meta["val"]
    return val


def only_first(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
    """Why not, if another result than the first is used."""
    for user in node.users:
        if user.target is operator.getitem and user.args[1] != 0 and user.users:
            return f"its result {user.args[1]} is used, which the engine does not compute"
    return None


def beyond_window(*numbers: int) -> str | None:
    """Why not, if a number of a window is more than readers take; XNNPACK's files have the same."""
    most = max(numbers, default=0)
    if most <= Limit.WINDOW:
        return None
    return f"its window has the number {most}, and at most {int(Limit.WINDOW)} is read"


def check_arguments(count: int) -> None:
    """Refuse a part with more arguments than readers take.

    Raises:
        ExportError: with the numbers.
    """
    if count > Limit.ARGUMENTS:
        raise ExportError(
            f"a part of the program takes or gives {count} tensors, and at most "
            f"{int(Limit.ARGUMENTS)} are possible: export with backend='portable', or pass fewer, "
            f"larger tensors",
            code=Code.NOT_SUPPORTED,
        )


def needs_constants(*names: str) -> WhyNot:
    """Why not, if one of these arguments is computed."""

    def why_not(node: Node, is_constant: Callable[[Any], bool]) -> str | None:
        args = arguments(node)
        for name in names:
            if args[name] is not None and not is_constant(args[name]):
                return f"its {name} is computed: the engine prepares weights ahead of time"
        return None

    return why_not
