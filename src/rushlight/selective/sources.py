"""The C++ sources of the runtime, and which of them a part of it needs.

A source needs the headers that it includes, and a header the sources in its folder that define
what it declares: the one of its name, and those that include it, of those with kernels only the
ones that define a function that it names. This may name more than is needed, which the linker
leaves out; `tests/e2e/selective/test_sources.py` holds that it never names less.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rushlight.errors import Code, Error

_INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
_ROW = re.compile(r'\{"([^"]+)", "([^"]*)",\s+kernels::(\w+)\}')
_MAKE = re.compile(r"make_operator\(const (\w+)Parameters&")
_KERNELS = "kernels/portable"
_DECLARED = re.compile(r"\b(\w+)\(")
_DEFINITION = re.compile(r"^[A-Za-z][\w:<>,*& ]*?\b(\w+)\(", re.M)
_TABLE, _DECLARATIONS = f"{_KERNELS}/table.cpp", f"{_KERNELS}/declarations.h"
_OPERATORS = "engine/operators"
REPLACED = (_TABLE, "module/default_backends.cpp")
"""The sources in whose place a selection has its own."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of the table of portable kernels: the letters of its arguments and its function."""

    signature: str
    function: str


def source_root() -> Path:
    """The folder with `cpp/` and `cmake/`: a checkout, or the copy inside of an installed package.

    Raises:
        Error: there are none.
    """
    package = Path(__file__).resolve().parents[1]
    for root in (package / "share" / "rushlight", package.parents[1]):
        if (root / "cpp" / "method" / "method.h").is_file():
            return root
    raise Error(
        f"{package} was installed without the C++ sources that a selective build needs; install "
        "a complete wheel of Rushlight, or build from a checkout",
        code=Code.NOT_FOUND,
    )


class Sources:
    """The sources below `cpp/`; paths are relative to it, with slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}

    @cached_property
    def includes(self) -> Mapping[str, set[str]]:
        """The files that each file includes."""
        folder = self.root / "cpp"
        paths = [p for p in sorted(folder.rglob("*")) if p.suffix in (".h", ".cpp")]
        names = {path.relative_to(folder).as_posix() for path in paths}
        return {name: self._included(name) & names for name in sorted(names)}

    def _included(self, name: str) -> set[str]:
        """The paths that a file includes: headers in `abi/` name each other without a folder."""
        folder = name.rpartition("/")[0]
        return {
            path.removeprefix("rushlight/") if path.startswith("rushlight/") else f"{folder}/{path}"
            for path in _INCLUDE.findall(self.text(name))
        }

    def text(self, name: str) -> str:
        """The text of a file."""
        if name not in self._texts:
            self._texts[name] = (self.root / "cpp" / name).read_text(encoding="utf-8")
        return self._texts[name]

    @cached_property
    def kernels(self) -> Mapping[str, KernelRow]:
        """The portable kernels by the names of their operators."""
        rows = _ROW.findall(self.text(_TABLE))
        return {name: KernelRow(signature, function) for name, signature, function in rows}

    @cached_property
    def kernel_files(self) -> Mapping[str, list[str]]:
        """The files that may define each kernel's function."""
        wanted = {row.function for row in self.kernels.values()}
        files: dict[str, list[str]] = {function: [] for function in wanted}
        for name, included in self.includes.items():
            if _DECLARATIONS in included and name != _TABLE:
                for word in sorted(wanted & set(re.findall(r"\w+", self.text(name)))):
                    files[word].append(name)
        return files

    @cached_property
    def node_files(self) -> Mapping[str, str]:
        """The file that makes the engine's operators for each kind of node."""
        return {
            kind: name
            for name in self.includes
            if name.startswith(f"{_OPERATORS}/") and name.endswith(".cpp")
            for kind in _MAKE.findall(self.text(name))
        }

    def needed(self, roots: Iterable[str], without: Collection[str] = REPLACED) -> set[str]:
        """The files, headers included, that `roots` need, with these; not those in `without`, by
        default what a selection writes in their place."""
        todo, needed = list(roots), set()
        while todo:
            name = todo.pop()
            if name in needed or name in without:
                continue
            needed.add(name)
            todo += self.includes[name]
            if name.endswith(".h") and name != _DECLARATIONS:
                todo += self._defining(name)
        return needed

    def headers(self, roots: Iterable[str]) -> set[str]:
        """The headers that `roots` include, with those among `roots`."""
        todo, found = list(roots), set()
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self.includes[name]
        return {name for name in found if name.endswith(".h")}

    @cached_property
    def _by_folder(self) -> Mapping[str, list[str]]:
        folders: dict[str, list[str]] = {}
        for name in self.includes:
            if name.endswith(".cpp"):
                folders.setdefault(name.rpartition("/")[0], []).append(name)
        return folders

    def _defining(self, header: str) -> list[str]:
        own = header.removesuffix(".h") + ".cpp"
        folder = self._by_folder.get(header.rpartition("/")[0], ())
        return [
            name
            for name in folder
            if name == own or (header in self.headers([name]) and self._defines(name, header))
        ]

    def _defines(self, name: str, header: str) -> bool:
        """Whether a source may define what a header in its folder declares."""
        if header in self.includes[name] and _DECLARATIONS not in self.includes[name]:
            return True
        declared = set(_DECLARED.findall(self.text(header)))
        return not declared.isdisjoint(_DEFINITION.findall(self.text(name)))
