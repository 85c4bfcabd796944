"""Control flow in the Out dialect: labels, jumps, and numbers that are written more than once.

The graph stays one sequence of nodes. What a loop needs again is named at its label and at the jump
back, so that the planner, which reads the sequence from top to bottom, keeps it for the whole loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def label(name: str, keep: Sequence[Any] = ()) -> None:
    """A place that jumps lead to; no instruction. `keep` lives from here on."""


def jump_if_false(condition: Any, to: str, keep: Sequence[Any] = ()) -> None:
    """Go on at label `to` if `condition`, a bool or a bool tensor, is (somewhere) false.

    With the condition `False` it always jumps. `keep` lives until here.
    """


def variable() -> Any:
    """A number of the type of its example, with a value of its own that only `move` writes."""


def move(value: Any, into: Any) -> None:
    """Write a number into a variable."""


def copy_index(into: torch.Tensor, value: torch.Tensor, index: int) -> torch.Tensor:
    """Make `into` `index + 1` long and copy `value` to its end.

    It runs as `executorch_prim::et_copy_index.tensor`.
    """
    return torch.cat([into[:index], value.unsqueeze(0)])


FLOW = (label, jump_if_false, variable, move)
"""The operators that are not kernel calls."""
