"""The ABI of the C interface is what its description says, which changes only with the version.

The oracles are the C compiler, for sizes and offsets, and ``nm``, for symbols.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from codegen.c_abi import ADVICE, FOLDER, abi_version, describe, path_of
from codegen.c_header import HEADERS, ROOT, Header, read_headers

LIBRARY = ROOT / "build" / "dev" / "librushlight.so"
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]


@pytest.fixture(scope="module")
def header() -> Header:
    return read_headers()


def _descriptions() -> dict[tuple[int, int], list[str]]:
    known = {}
    for path in FOLDER.glob("v*.txt"):
        match = re.fullmatch(r"v(\d+)\.(\d+)", path.stem)
        assert match, f"{path} is not v<major>.<minor>.txt"
        known[int(match[1]), int(match[2])] = path.read_text(encoding="utf-8").splitlines()
    return dict(sorted(known.items()))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_header_is_as_described(header: Header, compiler: str) -> None:
    path = path_of(abi_version())
    assert path.exists(), f"{path.name} is missing: run `python -m codegen.c_abi`"
    known, now = path.read_text(encoding="utf-8").splitlines(), describe(header, compiler)
    gone, new = [x for x in known if x not in now], [x for x in now if x not in known]
    assert known == now, f"the ABI has changed from {gone} to {new}: {ADVICE}"


def test_library_exports_the_functions_and_nothing_else(header: Header) -> None:
    run = subprocess.run(
        ["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert sorted(line.split()[-1] for line in run.stdout.splitlines()) == sorted(header.functions)


def test_name_of_the_library_has_the_major_number() -> None:
    run = subprocess.run(
        ["readelf", "-d", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert f"[librushlight.so.{abi_version()[0]}]" in run.stdout


def test_library_needs_nothing_of_cpp() -> None:
    run = subprocess.run(
        ["readelf", "-d", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert "stdc++" not in run.stdout and "libgcc" not in run.stdout


def _broken(before: list[str], after: list[str]) -> list[str]:
    """What a later minor version must not have changed: every line of the earlier one is there, but
    for the sizes of structs, whose fields come in the same order."""
    size = re.compile(r"(struct \w+): \d+ bytes")
    old = [size.sub(r"\1", line) for line in before]
    new = [size.sub(r"\1", line) for line in after]
    faults, struct = [], ""
    fields: dict[str, list[str]] = {}
    for line in new:
        struct = line if line.startswith("struct") else struct
        if line.startswith("  "):
            fields.setdefault(struct, []).append(line)
    for line in old:
        struct = line if line.startswith("struct") else struct
        known = fields.get(struct, []) if line.startswith("  ") else new
        if line not in known:
            faults.append(line)
    return faults


def test_minor_versions_only_add() -> None:
    versions = list(_descriptions().items())
    for (before, old), (after, new) in pairwise(versions):
        if before[0] == after[0]:
            assert not _broken(old, new), f"{after} breaks {before}: raise RL_ABI_MAJOR"


def test_header_is_the_newest_description() -> None:
    assert list(_descriptions())[-1] == abi_version()


def test_broken_descriptions_are_seen() -> None:
    old = [
        "struct a: 8 bytes",
        "  0+4 size: uint32_t",
        "  4+4 x: int32_t",
        "function f = int(void)",
    ]
    added = ["struct a: 16 bytes", *old[1:3], "  8+8 y: uint64_t", old[3], "function g = int(void)"]
    assert not _broken(old, added)
    assert _broken(old, [old[0], "  0+4 size: uint32_t", "  4+8 x: int64_t", old[3]])
    assert _broken(old, old[:3])
    assert _broken(old, ["struct b: 8 bytes", *old[1:]])


def test_a_changed_header_is_refused(tmp_path: Path) -> None:
    text = HEADERS[-1].read_text(encoding="utf-8")
    changed = tmp_path / "rushlight.h"
    changed.write_text(text.replace("  uint32_t threads;", "  uint64_t threads;"), encoding="utf-8")
    known = path_of(abi_version()).read_text(encoding="utf-8")
    fields = read_headers((HEADERS[0], changed)).structs["rl_module_options"]
    assert any(f.name == "threads" and f.type == "uint64_t" for f in fields)
    assert "threads: uint32_t" in known and "threads: uint64_t" not in known
