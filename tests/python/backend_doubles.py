"""Backends in Python for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import runtime

DEMO = "BackendWithCompilerDemo"
BUILT_IN = ["CpuBackend", "XnnpackBackend", DEMO]  # registered from the beginning


class Recorder:
    """Adds one to float inputs and records its calls; each of its methods can be replaced."""

    def __init__(
        self,
        init: Callable[[Any], Any] = lambda context: "handle",
        execute: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self.on_init = init
        self.on_execute = execute or self.add_one
        self.contexts: list[Any] = []
        self.handles: list[Any] = []
        self.destroyed: list[Any] = []

    def init(self, context: Any) -> Any:
        self.contexts.append(context)
        return self.on_init(context)

    def execute(self, context: Any, handle: Any, args: Any) -> Any:
        assert any(context is known for known in self.contexts)
        self.handles.append(handle)
        return self.on_execute(context, args)

    def destroy(self, handle: Any) -> None:
        self.destroyed.append(handle)

    @staticmethod
    def add_one(context: Any, args: Any) -> None:
        args[-1][...] = args[0] + 1


@contextmanager
def registered(id: str, backend: Any) -> Iterator[Any]:
    """Register a backend for the duration of the block."""
    runtime.register_backend(id, backend)
    try:
        yield backend
    finally:
        runtime.unregister_backend(id)
