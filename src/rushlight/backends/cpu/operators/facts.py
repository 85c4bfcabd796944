"""What the engine knows of operators that are steps of their own."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

from rushlight.backends.cpu.build.builder import Builder
from rushlight.backends.cpu.graph.rewrite import HALVES
from rushlight.partition.operators import IsConstant

REALS = (torch.float32, *HALVES)
"""What the engine computes, in float32."""

PREPARED = ": the engine prepares weights ahead of time"
"""Why it takes no computed weights, for `needs_constants`."""


def is_replaced(b: Builder, node: Node) -> Any:
    """Stands for the translation of a call that a pattern always replaces."""
    raise AssertionError(f"{node.name} is replaced before steps are made")


def only_first(node: Node, is_constant: IsConstant) -> str | None:
    """Why not, if another result than the first is used."""
    for user in node.users:
        if user.target is operator.getitem and user.args[1] != 0 and user.users:
            return f"its result {user.args[1]} is used, which the engine does not compute"
    return None
