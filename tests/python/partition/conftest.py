"""Registers the backends of the delegation tests, so that every test can load their files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delegates import Interpreter
from rushlight import runtime


@pytest.fixture(scope="module", autouse=True)
def interpreters() -> Iterator[None]:
    """Register `Interpreted` and `Other`."""
    for name in ("Interpreted", "Other"):
        runtime.register_backend(name, Interpreter)
    yield
    for name in ("Interpreted", "Other"):
        runtime.unregister_backend(name)
