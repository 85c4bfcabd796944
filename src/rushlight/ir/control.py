"""Control flow in the Out dialect: labels, jumps, and numbers that are written more than once.

The graph stays one sequence of nodes, which the planner reads from top to bottom. Values that every
iteration of a loop reads are named at its label and at the jump back, so that the planner keeps
them alive for the whole loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def label(name: str, keep: Sequence[Any] = ()) -> None:
    """The target of jumps; not an instruction. The values in `keep` are alive from here on."""


def jump_if_false(condition: Any, to: str, keep: Sequence[Any] = ()) -> None:
    """Jump to the label `to` if `condition` is false: a bool, or any element of a bool tensor.

    With the condition `False` it always jumps. The values in `keep` are alive until here.
    """


def variable() -> Any:
    """A number of the type of its example value; only `move` writes it."""


def move(value: Any, into: Any) -> None:
    """Write a number into a variable."""


def copy_index(into: torch.Tensor, value: torch.Tensor, index: int) -> torch.Tensor:
    """Make `into` `index + 1` long and copy `value` to its end.

    It runs as `executorch_prim::et_copy_index.tensor`.
    """
    return torch.cat([into[:index], value.unsqueeze(0)])


FLOW = (label, jump_if_false, variable, move)
"""The operators that are not kernel calls."""
