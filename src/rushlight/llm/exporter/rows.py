"""The rows of the step that is running: which position of which sequence each token has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

import torch


class Rows(NamedTuple):
    """The positions and sequences of a step's tokens, int64 [tokens] each."""

    positions: torch.Tensor
    sequences: torch.Tensor


_ROWS: ContextVar[Rows] = ContextVar("rows_of_step")


def rows_of_step() -> Rows:
    """The rows of the step that is running."""
    return _ROWS.get()


@contextlib.contextmanager
def step_of(rows: Rows) -> Iterator[None]:
    """Within it, attention functions find `rows`."""
    token = _ROWS.set(rows)
    try:
        yield
    finally:
        _ROWS.reset(token)
