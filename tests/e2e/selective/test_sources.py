"""A selective build compiles every source that it needs: held by the objects of the full build."""

from __future__ import annotations

import subprocess
from functools import cache

import pytest

from rushlight.selective.sources import REPLACED, Sources, source_root

BUILD = source_root() / "build" / "dev"
SOURCES = Sources(source_root())
_DEFINED = set("TDBRVWu")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not BUILD.is_dir(), reason="reads the objects in build/dev: `make ext`"),
]


@cache
def _symbols() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """(source -> symbols that it needs, symbol -> sources that define it), of the runtime."""
    needs: dict[str, set[str]] = {}
    defines: dict[str, set[str]] = {}
    for path in sorted(BUILD.rglob("*.cpp.o")):
        source = path.as_posix().partition("CMakeFiles/")[2].partition(".dir/")[2]
        name = source.removesuffix(".o").removeprefix("cpp/")
        if "kernels/portable/CMakeFiles" in path.as_posix():
            name = f"kernels/portable/{name}"
        if name not in SOURCES.includes or name.startswith(("llm/", "c_api/", "runner/")):
            continue
        listed = subprocess.run(["nm", str(path)], capture_output=True, text=True, check=True)
        for line in listed.stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                needs.setdefault(name, set()).add(symbol)
            elif kind in _DEFINED and "rushlight" in symbol:
                defines.setdefault(symbol, set()).add(name)
    return needs, defines


def _missing(*roots: str) -> dict[str, set[str]]:
    """Symbols that the sources of some roots need, defined elsewhere alone."""
    needs, defines = _symbols()
    chosen = SOURCES.needed(roots)
    missing = {}
    for name in chosen:
        for symbol in needs.get(name, ()):
            places = defines.get(symbol, set())
            if places and places.isdisjoint(chosen) and places.isdisjoint(REPLACED):
                missing[symbol] = places
    return missing


def test_full_every_kernel_finds_what_it_calls() -> None:
    missing = {
        operator: symbols
        for operator, row in SOURCES.kernels.items()
        if (symbols := _missing("method/method.h", *SOURCES.kernel_files[row.function]))
    }
    assert missing == {}


def test_full_every_node_and_facade_finds_what_it_calls() -> None:
    roots = [("backends/cpu/cpu_backend.h", file) for file in SOURCES.node_files.values()]
    roots += [("module/module.h", "module/default_kernels.cpp")]
    roots += [("backends/xnnpack/xnnpack_backend.h", *SOURCES.node_files.values())]
    for root in roots:
        # Operators of nodes are called by selected ones alone: graph/selected_nodes.h.
        missing = {s: p for s, p in _missing(*root).items() if "make_operator" not in s}
        assert missing == {}, root
