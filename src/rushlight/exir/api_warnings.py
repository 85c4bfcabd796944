"""Marks functions and classes whose interface may change or goes away."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Marked = TypeVar("Marked", bound=Callable[..., Any])


class ExperimentalWarning(DeprecationWarning):
    """Something is used whose interface may change."""


def _marking(message: str, category: type[Warning]) -> Callable[[Marked], Marked]:
    def mark(marked: Marked) -> Marked:
        if inspect.isclass(marked):
            make: Any = marked.__init__
            setattr(marked, "__init__", warning(make))  # noqa: B010  # mypy refuses the assignment
            return marked
        called: Marked = warning(marked)
        return called

    def warning(function: Any) -> Any:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(message, category, stacklevel=2)
            return function(*args, **kwargs)

        return called

    return mark


def deprecated(message: str) -> Callable[[Marked], Marked]:
    """Warn with `DeprecationWarning` when the function or class is used."""
    return _marking(message, DeprecationWarning)


def experimental(message: str) -> Callable[[Marked], Marked]:
    """Warn with `ExperimentalWarning` when the function or class is used."""
    return _marking(message, ExperimentalWarning)
