"""Writes the tables of kernels from ops/ops.yaml and torch's operator schemas.

It writes the C++ table and its declarations, the manifest that export checks programs against
(``rushlight/ir/kernels.json``), ``docs/operators.md``, and the files in which an ExecuTorch
application names kernels (``compat/executorch/kernels``). Run ``python
codegen/kernel_table.py`` after a change of ``ops/ops.yaml``. With ``--check`` nothing is written,
and the exit status says whether the checked-in files are up to date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # for running this file by its path

from codegen.kernel_entries import Entry, load_entries  # noqa: E402
from codegen.kernel_manifest import manifest  # noqa: E402
from codegen.kernel_yaml import kernel_files  # noqa: E402
from codegen.operator_docs import document  # noqa: E402

KERNELS = Path("cpp/kernels/portable")
HEADER = "// Written by codegen/kernel_table.py from ops/ops.yaml; do not edit.\n"


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
        **kernel_files(entries),
    }
    stale = []
    for name, text in texts.items():
        path = ROOT / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(name))
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if arguments.check else "wrote: ") + ", ".join(stale))
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
