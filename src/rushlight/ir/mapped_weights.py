"""Weights that lie in mapped files: their pages are given back as soon as they were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_RELEASE: ContextVar[Callable[[], None] | None] = ContextVar("release_of_weights", default=None)


@contextmanager
def released_by(release: Callable[[], None]) -> Iterator[None]:
    """Within it, `were_read` calls `release`.

    Args:
        release: gives back the memory of the pages that were read; they are read again when needed.
    """
    token = _RELEASE.set(release)
    try:
        yield
    finally:
        _RELEASE.reset(token)


def were_read() -> None:
    """Some weights were read."""
    release = _RELEASE.get()
    if release is not None:
        release()
