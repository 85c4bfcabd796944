"""The settings of torch under which models are captured, the same for every capture."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import RLock
from typing import Any, TypeVar
from unittest import mock

import torch
import torch._dynamo
import torch.export._trace
from torch._subclasses.fake_impls import op_implementations_dict

from rushlight.capture.lines import lines_of_functions
from rushlight.capture.recurrent import whole_recurrence
from rushlight.ir.quiet import quiet

_MASKED_SELECT = torch.ops.aten.masked_select.default
# Torch warns of the list of weights that its own recurrent layers keep.
_FLAT_WEIGHTS = r"The tensor attributes? (?:self\.[\w.]*_flat_weights\[\d+\](?:, )?)+ w"
# Our own message says that a size of 1 is fixed, and what to do; torch's error repeats the other.
_LOGGED = {
    "torch._export.non_strict_utils": "0/1 specialized",
    "torch.fx.experimental.symbolic_shapes": "Unable to find user code corresponding to",
}
_one_at_a_time = RLock()
F = TypeVar("F", bound=Callable[..., Any])


def one_at_a_time(stage: F) -> F:
    """Makes threads wait for each other: tracing replaces functions of torch for all of them."""

    @functools.wraps(stage)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _one_at_a_time:
            return stage(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


def _forget_threads() -> None:
    """In a child after a fork, replace the lock: the thread that held it does not exist there."""
    global _one_at_a_time
    _one_at_a_time = RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def tracing() -> Iterator[None]:
    """While active, `torch.export` captures without gradients, recurrent layers whole; one
    thread at a time.

    Dynamo, which captures the bodies of control flow, would take sizes that it saw in an earlier
    capture for conditions on the sizes of this one, so what it remembers is dropped first;
    functions that `torch.compile` made are compiled anew at their next call.
    """
    patched = (
        quiet(warned=_FLAT_WEIGHTS, logged=_LOGGED),
        _no_printed_graphs(),
        whole_recurrence(),
        broadcast_counts(),
        lines_of_functions(),
        _deeper_calls(),
    )
    with _one_at_a_time, torch.no_grad(), ExitStack() as stack:
        torch._dynamo.reset()
        for context in patched:
            stack.enter_context(context)
        yield


def _no_printed_graphs() -> AbstractContextManager[object]:
    """While active, torch does not print the graph that it had when a capture failed."""
    return mock.patch.object(torch.export._trace, "print", lambda *_, **__: None, create=True)


@contextmanager
def _deeper_calls() -> Iterator[None]:
    """While active, calls may be nested three times as deeply: torch puts calls of its own between
    those of modules, and a model that runs in eager should not fail for it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3 * limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def broadcast_counts() -> Iterator[None]:
    """While active, the bound of `masked_select`'s result is the number of elements of input and
    mask broadcast together; torch counts the input's alone, which is too few for a larger mask.
    One thread at a time."""

    def of_both(mode: Any, func: Any, x: Any, mask: Any) -> Any:
        with mode:
            x = x.expand(torch.broadcast_shapes(x.shape, mask.shape))
        return of_input(mode, func, x, mask)

    with _one_at_a_time:
        of_input = op_implementations_dict[_MASKED_SELECT]
        with mock.patch.dict(op_implementations_dict, {_MASKED_SELECT: of_both}):
            yield
