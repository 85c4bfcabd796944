"""`python -m codegen.schema` writes every generated file; `--check` only lists stale ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen.schema import cpp, python
from codegen.schema.parser import parse

COMMAND = "python -m codegen.schema"
# For each .fbs file: the error code for files that violate it, and its header's folder in cpp/, or
# None if C++ never reads such files.
SCHEMAS: dict[str, tuple[str, str | None]] = {
    "common": ("INVALID_PROGRAM", "program"),
    "program": ("INVALID_PROGRAM", "program"),
    "flat_tensor": ("INVALID_EXTERNAL_DATA", "program"),
    "cpu_engine": ("DELEGATE_INVALID_COMPATIBILITY", "engine/types"),
    "xnnpack": ("DELEGATE_INVALID_COMPATIBILITY", "backends/xnnpack/payload"),
    "etdump": ("INVALID_EXTERNAL_DATA", None),
    "bundled_program": ("INVALID_PROGRAM", "program"),
}


def cpp_name(fbs: Path) -> str:
    """The header of an .fbs file, below cpp/."""
    return f"{SCHEMAS[fbs.stem][1]}/{fbs.stem}_fb.h"


def python_module(fbs: Path) -> str:
    """The Python module of an .fbs file."""
    return f"rushlight.schema.{fbs.stem}"


def generate(root: Path) -> dict[Path, str]:
    """All generated files of the repository at `root`, with their texts."""
    files: dict[Path, str] = {}
    for name, (code, folder) in SCHEMAS.items():
        schema = parse(root / "schema" / f"{name}.fbs")
        if folder is not None:
            header = cpp.emit(schema, COMMAND, lambda path: f"rushlight/{cpp_name(path)}")
            files[root / "cpp" / cpp_name(schema.path)] = header
        module = python.emit(schema, COMMAND, python_module, code)
        files[root / "src/rushlight/schema" / f"{name}.py"] = module
    return files


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if files differ")
    check = parser.parse_args().check
    root = Path(__file__).resolve().parents[2]
    stale = 0
    for path, text in generate(root).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{'stale' if check else 'wrote'}: {path.relative_to(root)}")
        if not check:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
