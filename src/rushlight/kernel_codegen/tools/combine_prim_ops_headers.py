"""Merges several selected_prim_ops.h into one.

    python -m rushlight.kernel_codegen.tools.combine_prim_ops_headers \\
        --header_files=@LIST --output_dir=FOLDER   # LIST has the folders of the headers
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rushlight.files import write_text

_NAME = "selected_prim_ops.h"
_SELECTIVE = "#define EXECUTORCH_ENABLE_PRIM_OPS_SELECTIVE_BUILD"


def read_header_file(file_path: Path) -> set[str]:
    """The lines of a header that define the macro of an operator; none if it cannot be read.

    Args:
        file_path: the header.
    """
    try:
        text = file_path.read_text(encoding="utf-8")
    except OSError as error:
        print(f"Warning: {file_path} cannot be read: {error}", file=sys.stderr)
        return set()
    lines = (line.strip() for line in text.splitlines())
    return {line for line in lines if line.startswith("#define INCLUDE_")}


def combine_prim_ops_headers(header_file_paths: Sequence[str], output_path: str) -> None:
    """Writes one header with the macros of several.

    Args:
        header_file_paths: the folders that have them.
        output_path: the header.
    """
    macros: set[str] = set()
    for folder in header_file_paths:
        macros |= read_header_file(Path(folder) / _NAME)
    lines = ["#pragma once", f"// The operators of {len(header_file_paths)} headers.", ""]
    lines += [_SELECTIVE, *sorted(macros)] if macros else ["// None: all operators are wanted."]
    Path(output_path).parent.mkdir(parents=True, exist_ok=True)
    write_text(output_path, "\n".join([*lines, ""]))


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the header that the command line asks for.

    Args:
        argv: the arguments; by default those of the process.
    """
    parser = argparse.ArgumentParser(description="Merges lists of operators of the runtime itself")
    parser.add_argument("--header_files", required=True, help="@LIST of the headers' folders")
    parser.add_argument("--output_dir", required=True, help="the folder that gets the header")
    options = parser.parse_args(argv)
    if not options.header_files.startswith("@"):
        parser.error(f"--header_files is @LIST, a file that names folders: {options.header_files}")
    folders = Path(options.header_files[1:]).read_text(encoding="utf-8").split()
    if not folders:
        parser.error(f"{options.header_files[1:]} names no folder of a {_NAME}")
    combine_prim_ops_headers(folders, str(Path(options.output_dir) / _NAME))


if __name__ == "__main__":
    main()
