"""Seeds every test from its own name, so that it draws the same numbers in any order and process.

The global generators of torch, NumPy and `random` are seeded three times: from the file's name
before the file is imported; from the fixture's name before a fixture that several tests share is
set up; and from the test's name (its file without folders, and its parameters) before it runs.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

_HAS_TORCH = find_spec("torch") is not None


def seed_of(name: str) -> int:
    """A 32-bit seed from a name; it is the same in every process."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def _seed(nodeid: str, *more: str) -> None:
    folders, _, rest = nodeid.partition("::")
    seed = seed_of("::".join((folders.rpartition("/")[2], rest, *more)))
    random.seed(seed)
    np.random.seed(seed)
    if _HAS_TORCH:
        import torch

        torch.manual_seed(seed)


@contextmanager
def _state_kept() -> Iterator[None]:
    """Restore the state of all generators at the end."""
    python, numpy = random.getstate(), np.random.get_state()
    if _HAS_TORCH:
        import torch

        with torch.random.fork_rng(devices=[]):
            yield
    else:
        yield
    random.setstate(python)
    np.random.set_state(numpy)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Seed before a file is imported."""
    if isinstance(collector, pytest.Module):
        _seed(collector.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Seed before a fixture that several tests share, whichever of them runs first."""
    if fixturedef.scope == "function":
        return (yield)
    with _state_kept():
        _seed(fixturedef.baseid, fixturedef.argname, str(getattr(request, "param_index", 0)))
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed before a test and its own fixtures."""
    _seed(item.nodeid)
