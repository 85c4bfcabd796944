"""`python -m rushlight.selective`: writes a selection, for cmake/RushlightSelect.cmake."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rushlight.errors import Error
from rushlight.selective.selection import ISAS, Options, write_selection


def main() -> int:
    """Writes the selection that the arguments describe; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rushlight.selective")
    parser.add_argument("programs", nargs="+", type=Path, metavar="PROGRAM.pte")
    parser.add_argument("--name", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where to write")
    parser.add_argument("--root", type=Path, required=True, help="of the runtime's sources")
    parser.add_argument("--isa", default="all", choices=ISAS)
    parser.add_argument("--embed", action="store_true")
    parser.add_argument("--no-module", action="store_true")
    parser.add_argument("--c", action="store_true")
    arguments = parser.parse_args()
    try:
        options = Options(
            arguments.name, arguments.isa, arguments.embed, not arguments.no_module, arguments.c
        )
        write_selection(arguments.programs, options, arguments.folder, arguments.root)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
