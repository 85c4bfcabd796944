"""Writes the description of the C interface's ABI: ``cpp/c_api/abi/v<major>.<minor>.txt``.

It has the constants, the size of each struct, the offset, size and type of each field, and the
types of functions, of a 64-bit system. A description that is written does not change any more:
after a change of ``cpp/c_api/rushlight.h``, raise RL_ABI_MINOR there if all was added (functions,
constants, fields at the ends of structs), else RL_ABI_MAJOR, and run ``python -m codegen.c_abi``.

``tests/tools/test_c_abi.py`` compares the newest description with the header, with the compiler and
with the shared library, and each description with the one before it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from codegen.c_header import HEADERS, ROOT, Header, read_headers

FOLDER = ROOT / "cpp" / "c_api" / "abi"
ADVICE = (
    "raise RL_ABI_MINOR in cpp/c_api/rushlight.h if all was added at an end, else RL_ABI_MAJOR, "
    "and run `python -m codegen.c_abi`"
)


def abi_version() -> tuple[int, int]:
    """The version that the header has."""
    text = HEADERS[-1].read_text(encoding="utf-8")
    parts = [re.search(rf"#define RL_ABI_{part} (\d+)u", text) for part in ("MAJOR", "MINOR")]
    major, minor = (int(match[1]) for match in parts if match)
    return major, minor


def path_of(version: tuple[int, int]) -> Path:
    """Where the description of a version is.

    Args:
        version: the major and the minor number.
    """
    return FOLDER / f"v{version[0]}.{version[1]}.txt"


def describe(header: Header, compiler: str = "cc") -> list[str]:
    """The lines of the description, with sizes and offsets as a compiler has them.

    Args:
        header: what is described.
        compiler: a C compiler, whose programs run here.
    """
    lines = [f"constant {name} = {value}" for name, value in header.constants.items()]
    layouts = iter(_layouts(header, compiler))
    for name, fields in header.structs.items():
        lines.append(f"struct {name}: {next(layouts)} bytes")
        lines += [
            f"  {next(layouts)} {f.name}: {f.type}{f.count and f'[{f.count}]'}" for f in fields
        ]
    lines += [f"handle {name}" for name in header.opaque]
    lines += [f"type {name} = {known}" for name, known in header.aliases.items()]
    lines += [f"function {name} = {known}" for name, known in header.functions.items()]
    return lines


def _layouts(header: Header, compiler: str) -> list[str]:
    """The sizes and offsets, in the order of describe()."""
    prints = []
    for name, fields in header.structs.items():
        prints.append(f'printf("%zu\\n", sizeof({name}));')
        for f in fields:
            size = f"sizeof((({name}*)0)->{f.name})"
            prints.append(f'printf("%zu+%zu\\n", offsetof({name}, {f.name}), {size});')
    source = "#include <rushlight.h>\n#include <stdio.h>\nint main(void) {\n%s\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "layouts"
        command = [compiler, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
        command += [f"-I{path.parent}" for path in HEADERS]
        text = source % "\n".join(prints)
        subprocess.run([*command, "-o", program], input=text.encode(), check=True)
        run = subprocess.run([program], capture_output=True, text=True, check=True)
        return run.stdout.splitlines()


def main() -> int:
    """Write the description of the header's version, unless there is another one already."""
    path = path_of(abi_version())
    text = "\n".join(describe(read_headers())) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") != text:
        print(f"{path.relative_to(ROOT)} says otherwise, and does not change: {ADVICE}")
        return 1
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
