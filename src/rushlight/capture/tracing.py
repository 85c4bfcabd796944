"""The state that torch captures a model in, the same wherever that is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch._dynamo
from torch._subclasses.fake_impls import op_implementations_dict

from rushlight.capture.lines import lines_of_functions
from rushlight.capture.recurrent import scanned_recurrence

_MASKED_SELECT = torch.ops.aten.masked_select.default


@contextmanager
def tracing() -> Iterator[None]:
    """While active, `torch.export` captures without gradients, recurrent layers as scans.

    Dynamo, which captures the bodies of control flow, would take sizes that it saw in an earlier
    capture for conditions on the sizes of this one, so what it remembers is dropped first;
    functions that `torch.compile` made are compiled anew at their next call.
    """
    torch._dynamo.reset()
    patched = scanned_recurrence(), broadcast_counts(), lines_of_functions(), _deeper_calls()
    with torch.no_grad(), ExitStack() as stack:
        for context in patched:
            stack.enter_context(context)
        yield


@contextmanager
def _deeper_calls() -> Iterator[None]:
    """While active, calls may be nested three times as deeply: torch puts calls of its own between
    those of modules, and what runs in eager is to be captured."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3 * limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def broadcast_counts() -> Iterator[None]:
    """While active, what `masked_select` picks counts up to the shape that input and mask have
    together; torch takes the input's alone for the bound, also where the mask is larger."""
    of_input = op_implementations_dict[_MASKED_SELECT]

    def of_both(mode: Any, func: Any, x: Any, mask: Any) -> Any:
        with mode:
            x = x.expand(torch.broadcast_shapes(x.shape, mask.shape))
        return of_input(mode, func, x, mask)

    with mock.patch.dict(op_implementations_dict, {_MASKED_SELECT: of_both}):
        yield
