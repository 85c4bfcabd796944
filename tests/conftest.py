"""Fixtures for the tests of all folders: the reference models, and real ExecuTorch as an oracle."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXECUTORCH_SIDE = ROOT / "tests" / "peer" / "executorch_side.py"
sys.path.insert(0, str(ROOT))  # for `pytest` without `python -m`
if "PYTEST_XDIST_WORKER" in os.environ:  # the workers together use all cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from packages import Package  # noqa: E402
from rushlight import _core  # noqa: E402
from rushlight.peers import side  # noqa: E402
from seeding import (  # noqa: E402, F401  (hooks: every test draws from a seed of its own name)
    pytest_fixture_setup,
    pytest_make_collect_report,
    pytest_runtest_setup,
)
from shared_files import SharedFiles  # noqa: E402


def pytest_collection_finish() -> None:
    """Exclude all objects that exist after the imports from garbage collection, to save time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True, scope="session")
def _peaks_are_measured_once() -> Iterator[None]:
    """Measure the machine's peak speed once in a process: a profile's own takes half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "measure_peaks", cache(_core.measure_peaks))
        yield


@pytest.fixture(scope="session")
def models() -> ModuleType:
    """``benchmarks/models.py``: ``models.build(name)`` makes a model with its inputs."""
    from benchmarks import models

    return models


@pytest.fixture(scope="session")
def shared_files(tmp_path_factory: pytest.TempPathFactory) -> SharedFiles:
    """Files that are made once for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    return SharedFiles(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A package that is installed for the length of the test."""
    return Package(tmp_path / "package", monkeypatch)


@pytest.fixture(autouse=True)
def _pipes_have_their_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the width of the terminal, which pytest-xdist passes to its workers: commands under
    test would use it."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _registered_backends_are_restored() -> Iterator[None]:
    """Remove the backends that a test adds: the table of backends belongs to the whole process."""
    from rushlight.runtime import backend_registry, unregister_backend

    before = set(backend_registry.registered_backend_names)
    yield
    for id in set(backend_registry.registered_backend_names) - before:
        unregister_backend(id)


@pytest.fixture(scope="session")
def executorch_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with real ExecuTorch.

    RUSHLIGHT_EXECUTORCH_PYTHON names another one than the project's own environment, which is made
    if it is missing; test processes that run in parallel wait for the one that makes it.
    """
    named = os.environ.get("RUSHLIGHT_EXECUTORCH_PYTHON")
    return Path(named) if named else _python_of(".venv-executorch", "peer")


def _python_of(environment: str, target: str) -> Path:
    """The Python of an environment, which `make` makes if it is missing."""
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        from filelock import FileLock

        with FileLock(str(ROOT / f"{environment}.lock")):
            subprocess.run(["make", target], cwd=ROOT, check=True)
    return python


@pytest.fixture(scope="session")
def sanitized() -> Path:
    """The folder of the C++ tests that are built with AddressSanitizer and UBSan.

    They are built if they are missing; after a change, `make sanitize` builds them anew.
    """
    folder = ROOT / "build" / "sanitize" / "tests" / "cpp"
    if not (folder / "replay_cases").exists():
        from filelock import FileLock

        with FileLock(str(ROOT / "build" / "sanitize.lock")):
            subprocess.run(["make", "sanitize"], cwd=ROOT, check=True)
    return folder


class ExecuTorch:
    """Runs commands of ``tests/peer/executorch_side.py``; a process that died is started again."""

    def __init__(self, python: Path) -> None:
        self.python = python
        self._side: side.Side | None = None

    def call(self, command: str, **arguments: Any) -> Any:
        """Run a command; paths may be given as `Path`."""
        if self._side is None:
            self._side = side.Side(self.python, EXECUTORCH_SIDE)
        request = {k: str(v) if isinstance(v, Path) else v for k, v in arguments.items()}
        try:
            return self._side.call(command, **request)
        except side.SideError:
            if not self._side.alive():
                self.close()
            raise

    def close(self) -> None:
        """End the process, if there is one."""
        if self._side is not None:
            self._side.close()
            self._side = None


@pytest.fixture(scope="session")
def executorch(executorch_python: Path) -> Iterator[ExecuTorch]:
    """Real ExecuTorch in a process of its own, kept for the session."""
    peer = ExecuTorch(executorch_python)
    yield peer
    peer.close()


@pytest.fixture(scope="session")
def tracing_executorch() -> Iterator[ExecuTorch]:
    """Likewise the release of ExecuTorch whose runtime records traces."""
    peer = ExecuTorch(_python_of(".venv-executorch-tracing", "tracing-peer"))
    yield peer
    peer.close()
