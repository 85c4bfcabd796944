"""Writes all that is known of kernels from ops/ops.yaml and torch's operator schemas.

Four files say it: the C++ table and its declarations, the manifest that export checks programs
against (``rushlight/ir/kernels.json``), and ``docs/operators.md``. Run ``python
codegen/kernel_table.py`` after a change of ``ops/ops.yaml``; with ``--check`` nothing is written
and the exit status says whether the checked-in files are up to date.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # for those who run this file by its path

from codegen.kernel_manifest import DTYPES, manifest  # noqa: E402
from codegen.operator_docs import document  # noqa: E402

OPS_FILE = ROOT / "ops" / "ops.yaml"
KERNELS = Path("cpp/kernels/portable")
HEADER = "// Written by codegen/kernel_table.py from ops/ops.yaml; do not edit.\n"
FIELDS = {"op", "kernel", "dtypes", "arguments", "schema"}

# Letters of cpp/kernel/kernel.h by the type's name in torch's schemas.
LETTERS = {
    "Tensor": "t",
    "List[Tensor]": "T",
    "List[Optional[Tensor]]": "O",
    "int": "i",
    "SymInt": "i",
    "List[int]": "I",
    "List[SymInt]": "I",
    "float": "d",
    "List[float]": "D",
    "bool": "b",
    "List[bool]": "B",
    "number": "s",
    "Scalar": "s",
    "str": "S",
}
# Only ever None in a program; any optional letter says so.
ONLY_NONE = {"Optional[Device]": "?i", "Optional[Generator]": "?i"}


@dataclass(frozen=True)
class Entry:
    """One kernel of ops.yaml."""

    op: str
    kernel: str
    signature: str
    family: str
    dtypes: str
    arguments: dict[str, str] = field(default_factory=dict)


def letter(type_name: str) -> str:
    """Returns the signature letter (with ``?`` for an optional) of a torch schema type."""
    if type_name in ONLY_NONE:
        return ONLY_NONE[type_name]
    if type_name.startswith("Optional[") and type_name.endswith("]"):
        return "?" + letter(type_name[len("Optional[") : -1])
    return LETTERS[type_name]


def argument_letter(argument: Any) -> str:
    """Returns the letter of one argument: ``w`` and ``W`` for tensors that the operator writes."""
    found = letter(str(argument.type))
    written = argument.alias_info is not None and argument.alias_info.is_write
    return {"t": "w", "T": "W"}[found] if written else found


def schema_of(row: dict[str, Any]) -> Any:
    """Returns torch's schema of the row's operator, or the one that the row itself carries."""
    op = row["op"]
    if "schema" in row:
        return torch._C.parse_schema("rushlight::op" + row["schema"])
    namespace_and_name, _, overload = op.partition(".")
    schema = torch._C._get_schema(namespace_and_name, overload)
    if schema is None:
        raise ValueError(f"{op}: torch has no such operator; give its schema in ops.yaml")
    return schema


def signature_of(row: dict[str, Any]) -> str:
    """Derives the signature letters of cpp/kernel/kernel.h for one row of ops.yaml."""
    schema = schema_of(row)
    letters = "".join(argument_letter(argument) for argument in schema.arguments)
    if not schema.returns:
        # torch's out operators on lists return nothing, yet programs write the list once more.
        return letters if "schema" in row else letters + "="
    aliased = any(result.alias_info is not None for result in schema.returns)
    return letters + ("=" if aliased else "r")


def check_dtypes(op: str, text: str) -> None:
    """Raises ValueError unless `text` is dtypes and classes joined by ``+``."""
    wrong = set(text.split("+")) - set(DTYPES)
    if wrong:
        raise ValueError(f"{op}: unknown dtypes {sorted(wrong)}; see the top of {OPS_FILE.name}")


def entry_of(row: dict[str, Any], family: str) -> Entry:
    """Checks one row of ops.yaml."""
    op = row.get("op", "?")
    unknown = set(row) - FIELDS
    missing = {"op", "kernel", "dtypes"} - set(row)
    if unknown or missing:
        raise ValueError(f"{op}: unknown fields {sorted(unknown)}, missing {sorted(missing)}")
    arguments = row.get("arguments", {})
    tensors = {a.name for a in schema_of(row).arguments if "Tensor" in str(a.type)}
    if not set(arguments) <= tensors:
        raise ValueError(f"{op}: no tensors of it are {sorted(set(arguments) - tensors)}")
    for text in (row["dtypes"], *arguments.values()):
        check_dtypes(op, text)
    return Entry(op, row["kernel"], signature_of(row), family, row["dtypes"], arguments)


def load_entries(path: Path = OPS_FILE) -> list[Entry]:
    """Reads ops.yaml and checks each row; entries come sorted by operator name.

    A family is what stands under a line ``# --- file.cpp``.
    """
    entries: dict[str, Entry] = {}
    parts = re.split(r"^# --- (\w+)\.cpp$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for family, text in zip(parts[1::2], parts[2::2], strict=True):
        for row in yaml.safe_load(text) or []:
            entry = entry_of(row, family)
            if entry.op in entries:
                raise ValueError(f"{entry.op}: listed twice")
            entries[entry.op] = entry
    return sorted(entries.values(), key=lambda entry: entry.op)


def declarations(entries: list[Entry]) -> str:
    """Returns the text of declarations.h."""
    functions = sorted({entry.kernel for entry in entries})
    lines = [
        HEADER + "// The functions of the portable kernels.",
        "#pragma once",
        "",
        '#include "rushlight/kernel/kernel.h"',
        "",
        "namespace rushlight::kernels {",
        "",
        *(f"Status {name}(KernelContext& ctx, EValue* const* args);" for name in functions),
        "",
        "}  // namespace rushlight::kernels",
    ]
    return "\n".join(lines) + "\n"


def table(entries: list[Entry]) -> str:
    """Returns the text of table.cpp."""
    rows: list[str] = []
    for entry in entries:
        row = f'    {{"{entry.op}", "{entry.signature}", kernels::{entry.kernel}}},'
        if len(row) > 100:
            head, tail = row.rsplit(", ", 1)
            row = f"{head},\n     {tail}"
        rows.append(row)
    lines = [
        HEADER.rstrip(),
        '#include "rushlight/kernels/portable/declarations.h"',
        '#include "rushlight/kernels/portable/portable.h"',
        "",
        "namespace rushlight {",
        "namespace {",
        "",
        "// clang-format off",
        "constexpr Kernel kKernels[] = {",
        *rows,
        "};",
        "// clang-format on",
        "",
        "static_assert(sizeof(kKernels) / sizeof(kKernels[0]) <= KernelTable::kCapacity,",
        '              "the portable kernels do not fit the table");',
        "",
        "}  // namespace",
        "",
        "Status register_portable_kernels(KernelTable& table) { return table.add(kKernels); }",
        "",
        "}  // namespace rushlight",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes or checks the generated files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    arguments = parser.parse_args()
    entries = load_entries()
    texts = {
        KERNELS / "declarations.h": declarations(entries),
        KERNELS / "table.cpp": table(entries),
        Path("src/rushlight/ir/kernels.json"): manifest(entries),
        Path("docs/operators.md"): document(entries),
    }
    stale = []
    for name, text in texts.items():
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(name))
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if arguments.check else "wrote: ") + ", ".join(stale))
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
