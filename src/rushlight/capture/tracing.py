"""The state that torch captures a model in, the same wherever that is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch._dynamo
import torch.export._trace
from torch._subclasses.fake_impls import op_implementations_dict

from rushlight.capture.lines import lines_of_functions
from rushlight.capture.recurrent import scanned_recurrence
from rushlight.ir.quiet import quiet

_MASKED_SELECT = torch.ops.aten.masked_select.default
# Torch's own recurrent layers keep a list of their weights, which they may not. Whether a size of 1
# is fixed is told by our own message, which says what to do.
_FLAT_WEIGHTS = r"The tensor attributes? (?:self\.[\w.]*_flat_weights\[\d+\](?:, )?)+ w"
# What torch says of a size that depends on values is in its error as well.
_LOGGED = {
    "torch._export.non_strict_utils": "0/1 specialized",
    "torch.fx.experimental.symbolic_shapes": "Unable to find user code corresponding to",
}


@contextmanager
def tracing() -> Iterator[None]:
    """While active, `torch.export` captures without gradients, recurrent layers as scans.

    Dynamo, which captures the bodies of control flow, would take sizes that it saw in an earlier
    capture for conditions on the sizes of this one, so what it remembers is dropped first;
    functions that `torch.compile` made are compiled anew at their next call.
    """
    torch._dynamo.reset()
    patched = (
        quiet(warned=_FLAT_WEIGHTS, logged=_LOGGED),
        _no_printed_graphs(),
        scanned_recurrence(),
        broadcast_counts(),
        lines_of_functions(),
        _deeper_calls(),
    )
    with torch.no_grad(), ExitStack() as stack:
        for context in patched:
            stack.enter_context(context)
        yield


def _no_printed_graphs() -> AbstractContextManager[object]:
    """While active, torch does not print the graph that it had when a capture failed."""
    return mock.patch.object(torch.export._trace, "print", lambda *_, **__: None, create=True)


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
