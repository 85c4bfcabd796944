"""Runs the tests of one installed file of ExecuTorch, and writes what became of each.

    python one_file.py FOLDER-OF-EXECUTORCH MODULE RESULTS.jsonl [LEFT-OUT.json]

FOLDER is where the package `executorch` is installed that the tests come from. Where another
`executorch` is imported, as ours is, modules of tests and what only they use are read from there.
RESULTS gets a line when a test begins and one when it ends, so that a crash or a hang is known by
its test. The tests that LEFT-OUT names are not run.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# Folders, and files, of the wheel that have tests, models and helpers of tests.
TESTS = frozenset({"test", "tests", "examples"})
HELPERS = frozenset(
    {
        "executorch.devtools.bundled_program.util",
        "executorch.devtools.bundled_program.util.test_util",
    }
)


def is_of_tests(name: str) -> bool:
    """Whether a module of the wheel is part of its tests."""
    parts = name.split(".")
    last = parts[-1]
    is_test = last.startswith("test_") or last.endswith("_test") or name in HELPERS
    return is_test or not TESTS.isdisjoint(parts)


class FromWheel:
    """Finds modules of tests in the wheel, for whoever has another package `executorch`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The module's file, or a folder without one, if the wheel has it."""
        if not name.startswith("executorch.") or not is_of_tests(name):
            return None
        place = self.folder.joinpath(*name.split(".")[1:])
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return importlib.util.spec_from_file_location(name, file)
        if place.is_dir():
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None


class Named(pytest.Module):
    """A file that is imported by the name that it has in its package."""

    name_of_module = ""

    def _getobj(self) -> ModuleType:
        return importlib.import_module(self.name_of_module)


class Recorder:
    """What pytest tells about each test, as lines."""

    def __init__(self, results: Path, left_out: Sequence[str]) -> None:
        self.file = results.open("a", encoding="utf-8")
        self.left_out = frozenset(left_out)

    def tell(self, test: str, outcome: str, why: str = "") -> None:
        line = {"test": test.partition("::")[2], "outcome": outcome, "why": why}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_pycollect_makemodule(self, module_path: Path, parent: Any) -> Named:
        return Named.from_parent(parent, path=module_path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: Any) -> Any:
        # As a package, the folder's own __init__.py would be imported: real ExecuTorch's.
        return pytest.Dir.from_parent(parent, path=path)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if i.nodeid.partition("::")[2] not in self.left_out]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell("::", "fails", _reason(report))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell(nodeid, "begins")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.tell(report.nodeid, "fails", _reason(report))
        elif report.skipped:
            self.tell(report.nodeid, "skipped", str(report.longrepr)[:300])
        elif report.when == "call":
            self.tell(report.nodeid, "passes")


def _reason(report: Any) -> str:
    """The first line of the error that ended a test."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and str(crash.message).strip():
        return str(crash.message).strip().partition("\n")[0][:300]
    lines = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")]
    return lines[-1][2:].strip()[:300] if lines else str(report.longrepr)[-300:]


def main(folder: str, module: str, results: str, left_out: str | None = None) -> int:
    """Run the tests; returns pytest's exit status."""
    Named.name_of_module = module
    importlib.import_module("executorch")  # its finder comes after that of tests
    sys.meta_path.insert(0, FromWheel(Path(folder)))  # type: ignore[arg-type]
    skipped = json.loads(Path(left_out).read_text(encoding="utf-8")) if left_out else []
    file = Path(folder).joinpath(*module.split(".")[1:]).with_suffix(".py")
    flags = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", folder]
    flags += ["-p", "no:xdist", "--override-ini", "python_files=*.py", "--capture=sys"]
    flags.append("--assert=plain")  # else every module that is imported would be rewritten
    return int(pytest.main([*flags, str(file)], plugins=[Recorder(Path(results), skipped)]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
