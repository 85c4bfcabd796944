"""Writes what a selective build is made from into a folder, for cmake/RushlightSelect.cmake.

* `kernels.cpp`: the table with exactly the kernels that the programs call, one row for each
  combination of dtypes and dim orders;
* `backends.cpp`: the backends that they call;
* `rushlight_selection.h`: the kinds of nodes, dtypes and the instruction set that are kept
  (cpp/kernel/selection.h);
* `NAME.h`, and `programs.cpp` with the programs, if they are embedded;
* `sources.cmake`: the runtime's sources that are compiled, and headers that are installed;
* `selection.json`: the same for reports.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rushlight.errors import Code, Error
from rushlight.files import write_text
from rushlight.selective import products
from rushlight.selective.products import Products
from rushlight.selective.sources import REPLACED, Sources
from rushlight.selective.texts import (
    backends_text,
    header_text,
    kernels_text,
    programs_text,
    selection_text,
)
from rushlight.selective.uses import CPU, XNNPACK, Uses, uses_of

ISAS = ("all", "plain", "avx2", "avx512", "avx512vnni", "neon", "neondot", "neoni8mm")
"""What a build may have loops for: every instruction set of its processor, or one alone."""
_LOOPS_ISA = {"avx512vnni": "avx512", "neondot": "neon", "neoni8mm": "neon"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CORE = ("method/method.h", "kernels/portable/portable.h")
_PRODUCT = "kernels/portable/linalg/gemm.cpp"
# The loops of weights that not every build has: `Uses.weights`.
_WEIGHT_LOOPS = {
    "nibbles": "engine/loops/products/dot_nibbles.cpp",
    "row_groups": "engine/loops/products/dot_groups.cpp",
}
_C_INTERFACE = ("c_api/rushlight.h", "c_api/new_delete.cpp")
_ENGINE_BACKENDS = {
    CPU: "backends/cpu/cpu_backend.h",
    XNNPACK: "backends/xnnpack/xnnpack_backend.h",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What a selective build is asked for.

    Attributes:
        name: of the library, its header and its namespace.
        isa: one of `ISAS`.
        embed: whether the library holds the programs themselves.
        module: whether it has the facade `Module`, which needs files and a heap.
        c: whether it has the C interface of modules, which needs the facade.
    """

    name: str
    isa: str = "all"
    embed: bool = False
    module: bool = True
    c: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == "rushlight":
            problem = (
                f"the name {self.name!r} must be a small letter, then small letters, digits and _, "
                "and not 'rushlight': it names a library, a header and a namespace"
            )
        elif self.isa not in ISAS:
            problem = f"the instruction set {self.isa!r} is none of {', '.join(ISAS)}"
        elif self.c and not self.module:
            problem = "the C interface needs the class Module: leave out one of the two options"
        else:
            return
        raise Error(problem, code=Code.INVALID_ARGUMENT)

    @property
    def loops_isa(self) -> str:
        """The instruction set of loops that have no form for products of bytes alone."""
        return _LOOPS_ISA.get(self.isa, self.isa)


def write_selection(programs: Sequence[Path], options: Options, folder: Path, root: Path) -> Uses:
    """Write a selection.

    Args:
        programs: the files that the build is for.
        options: what is asked for.
        folder: where the selection is written; made if it is not there.
        root: the folder of the runtime's `cpp/` and `cmake/`.

    Raises:
        LoadError: a program cannot be read.
        Error: the runtime has no kernel for an operator of a program, or two programs that are to
            be embedded have one name.
    """
    uses = uses_of(programs)
    sources = Sources(root)
    _check_operators(uses, sources)
    files = {
        "kernels.cpp": kernels_text(uses, sources, options.name),
        "backends.cpp": backends_text(uses.backends, options.name, options.module),
        "rushlight_selection.h": selection_text(
            uses, _dtypes(uses), products_in(uses, sources), options.isa, options.loops_isa
        ),
        f"{options.name}.h": header_text(
            uses, options.name, options.module, stems(programs) if options.embed else []
        ),
        "sources.cmake": _cmake(sources, uses, options),
        "selection.json": json.dumps(_json(programs, uses, options), indent=1) + "\n",
    }
    if options.embed:
        files["programs.cpp"] = programs_text(
            {stem: path.resolve() for stem, path in zip(stems(programs), programs, strict=True)},
            options.name,
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)  # what did not change is not compiled again
    return uses


def stems(programs: Sequence[Path]) -> list[str]:
    """The names of embedded programs in C++.

    Raises:
        Error: two programs have the same one.
    """
    names = [re.sub(r"\W", "_", path.stem) for path in programs]
    names = [f"_{name}"[not name[:1].isdigit() :] for name in names]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise Error(
            f"two programs would be called {double!r}: rename one to embed both",
            code=Code.INVALID_ARGUMENT,
        )
    return names


def _check_operators(uses: Uses, sources: Sources) -> None:
    unknown = sorted(set(uses.operators) - set(sources.kernels) - uses.own)
    if unknown:
        raise Error(
            f"this runtime has no kernels for {', '.join(unknown)}, which the programs call; "
            "export them so that these operators are decomposed",
            code=Code.OPERATOR_MISSING,
        )


def _dtypes(uses: Uses) -> list[str]:
    """The names in C++ of the dtypes that kernels get."""
    return sorted(name for name in uses.dtypes if name)


def roots_of(uses: Uses, sources: Sources, options: Options) -> list[str]:
    """The files that a build of these uses begins with."""
    roots = base_roots(uses, options)
    for name in sorted(set(uses.operators) - uses.own):
        roots += sources.kernel_files[sources.kernels[name].function]
    return roots + [sources.node_files[kind] for kind in sorted(node_kinds(uses, sources))]


def needed_by(uses: Uses, sources: Sources, options: Options) -> set[str]:
    """The files that a build of these uses is made from, headers included."""
    whole = XNNPACK in uses.backends
    loops = {file for kind, file in _WEIGHT_LOOPS.items() if kind not in uses.weights and not whole}
    return sources.needed(roots_of(uses, sources, options), {*REPLACED, *loops})


def base_roots(uses: Uses, options: Options) -> list[str]:
    """The files among these that no operator brings."""
    roots = [*_CORE, *(["module/module.h", "module/default_kernels.cpp"] if options.module else [])]
    roots += _C_INTERFACE if options.c else []
    roots += [header for backend, header in _ENGINE_BACKENDS.items() if backend in uses.backends]
    if XNNPACK in uses.backends and options.module:
        roots.append("module/files/desktop_files.h")
    return roots


def node_kinds(uses: Uses, sources: Sources) -> set[str]:
    """The kinds of nodes that a build has operators for: those in payloads of the cpu backend, and
    all if XNNPACK's payloads are translated, which happens when they are loaded."""
    if XNNPACK in uses.backends:
        return set(sources.node_files)
    return uses.nodes & set(sources.node_files)


def products_in(uses: Uses, sources: Sources) -> Products:
    """What a build needs of the portable float32 product: by the shapes of matrix products, and all
    if other kernels, such as convolutions, call it."""
    for name in set(uses.operators) - uses.own - set(products.OPERATORS):
        if _PRODUCT in sources.needed(sources.kernel_files[sources.kernels[name].function]):
            return products.ALL
    return products.union(uses.products)


def _cmake(sources: Sources, uses: Uses, options: Options) -> str:
    needed = sorted(needed_by(uses, sources, options))
    files = [name for name in needed if name.endswith(".cpp")]
    loops = [name for name in files if re.search(r"^(engine|kernels)/.*loops/", name)]
    roots = ["method/method.h", "delegate/backend.h"]
    headers = sorted(sources.headers([*roots, *(["module/module.h"] if options.module else [])]))
    lists = {
        "RUSHLIGHT_SELECTED_SOURCES": [name for name in files if name not in loops],
        "RUSHLIGHT_SELECTED_LOOPS": loops,
        "RUSHLIGHT_SELECTED_HEADERS": headers,
        "RUSHLIGHT_SELECTED_ISAS": [] if options.isa == "all" else [options.loops_isa],
        "RUSHLIGHT_SELECTED_BACKENDS": sorted(uses.backends),
        "RUSHLIGHT_SELECTED_VERSION": [_version()] if options.c else [],
        "RUSHLIGHT_SELECTED_DOT_ISAS": [options.isa] if options.isa != options.loops_isa else [],
    }
    lines = ["# Written for a selective build of Rushlight from its programs; do not edit."]
    lines += ["\n  ".join([f"set({name}", *items]) + ")" for name, items in lists.items()]
    return "\n".join(lines) + "\n"


def _version() -> str:
    return importlib.metadata.version("rushlight")


def _json(programs: Sequence[Path], uses: Uses, options: Options) -> dict[str, object]:
    return {
        "version": 1,
        "name": options.name,
        "programs": [path.name for path in programs],
        "isa": options.isa,
        "embedded": options.embed,
        "c": options.c,
        "operators": {name: len(calls) for name, calls in sorted(uses.operators.items())},
        "own operators": sorted(uses.own),
        "dtypes": sorted(uses.dtypes),
        "backends": sorted(uses.backends),
        "nodes": sorted(uses.nodes),
    }
