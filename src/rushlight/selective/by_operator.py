"""What each operator of a build takes: the sources that it alone brings, then what operators share.

Operators are portable kernels and the kinds of the engine's nodes. Every byte that was linked is in
one row, so the rows add up to the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.selective.link_map import Part
from rushlight.selective.selection import Options, base_roots, node_kinds
from rushlight.selective.sources import REPLACED, Sources
from rushlight.selective.uses import Uses

_CORE = ("abi", "core", "events", "kernel", "platform", "trace")


@dataclass(frozen=True, slots=True)
class Row(Part):
    """The code and constants of an operator, or of a part that several share.

    Attributes:
        name: "aten::relu.out", "CpuBackend Softmax", or the folder of a shared part.
        code, constants: in bytes.
        shared: whether more than one operator, or every program, needs it.
    """

    shared: bool


def rows_of(parts: Sequence[Part], uses: Uses, sources: Sources, options: Options) -> list[Row]:
    """The rows of a build: operators, then shared parts, the largest first.

    Args:
        parts: what was linked, by source file.
        uses: what the build's programs use.
        sources: the runtime's.
        options: how it was built.
    """
    base = sources.needed(base_roots(uses, options))
    owners: dict[str, set[str]] = {}
    begins = _operator_files(uses, sources)
    first = {file for files in begins.values() for file in files}
    for operator, files in begins.items():
        # What operators share does not call operators, whatever headers they have in common.
        for file in sources.needed(files, {*REPLACED, *first} - set(files)) - base:
            owners.setdefault(file, set()).add(operator)
    code: Counter[tuple[bool, str]] = Counter()
    constants: Counter[tuple[bool, str]] = Counter()
    for part in parts:
        operators = owners.get(part.name, set())
        key = (False, min(operators)) if len(operators) == 1 else (True, _shared_part(part.name))
        code[key] += part.code
        constants[key] += part.constants
    keys = sorted(code, key=lambda key: (key[0], -code[key] - constants[key], key[1]))
    return [Row(name, code[shared, name], constants[shared, name], shared) for shared, name in keys]


def _operator_files(uses: Uses, sources: Sources) -> dict[str, list[str]]:
    """The files that each operator begins with."""
    files = {
        name: sources.kernel_files[sources.kernels[name].function]
        for name in set(uses.operators) & set(sources.kernels)
    }
    nodes = {f"CpuBackend {kind}": kind for kind in node_kinds(uses, sources)}
    return files | {name: [sources.node_files[kind]] for name, kind in nodes.items()}


def _shared_part(name: str) -> str:
    """The folder of the engine, of kernels or of the runtime that a source is in."""
    folders = name.split("/")[:-1]
    if not folders:
        return "generated, and libraries"
    if folders[0] in _CORE:
        return "core"
    return "/".join(folders[:3] if folders[0] in ("engine", "kernels") else folders[:1])
