"""Capturing methods of a module that are not `forward`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def patch_forward(obj: torch.nn.Module, new_method: Callable[..., Any]) -> Iterator[None]:
    """While active, a method of a module is its `forward`, so that `torch.export` captures it.

    Args:
        obj: the module.
        new_method: one of its methods, or a function whose first argument is the module.
    """
    had_own, before = "forward" in vars(obj), obj.forward
    function = getattr(new_method, "__func__", new_method)
    obj.forward = function.__get__(obj, type(obj))
    try:
        yield
    finally:
        if had_own:
            obj.forward = before
        else:
            del obj.forward
