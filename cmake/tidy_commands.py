"""How each C++ file is compiled, once: `tidy_commands.py BUILD OUT`, for clang-tidy.

Loops are compiled for several instruction sets, and clang-tidy would check a file as many times.
The build names the largest set last; it is the one that has the most code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(build: Path, out: Path) -> None:
    """Write the last command of each file of the build to a database in `out`."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    last = {command["file"]: command for command in commands}
    text = json.dumps(list(last.values()), indent=1)
    (out / "compile_commands.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
