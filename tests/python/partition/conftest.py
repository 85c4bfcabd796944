"""The backends of the delegation tests can run wherever a test loads a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delegates import Interpreter
from rushlight import runtime


@pytest.fixture(scope="module", autouse=True)
def interpreters() -> Iterator[None]:
    """`Interpreted` and `Other`, registered."""
    for name in ("Interpreted", "Other"):
        runtime.register_backend(name, Interpreter)
    yield
    for name in ("Interpreted", "Other"):
        runtime.unregister_backend(name)
