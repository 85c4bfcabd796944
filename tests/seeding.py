"""Every test draws from a seed of its own name: in any order, in any process, alone or not.

The global generators of torch, NumPy and `random` are seeded from the test's name (its file without
folders, and its parameters) before it runs; from the file's name before the file is imported, for
what is drawn at import; and from the fixture's name before a fixture that several tests share.
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
    """A seed of 32 bits from a name, the same in every process."""
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
    """What is drawn inside moves none of the generators on."""
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
    """Before a file is imported."""
    if isinstance(collector, pytest.Module):
        _seed(collector.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Before a fixture that is made once for several tests, whichever of them runs first."""
    if fixturedef.scope == "function":
        return (yield)
    with _state_kept():
        _seed(fixturedef.baseid, fixturedef.argname, str(getattr(request, "param_index", 0)))
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before a test and its fixtures."""
    _seed(item.nodeid)
