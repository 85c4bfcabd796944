"""Bytes of every source of the runtime, for `rushlight size`.

`python benchmarks/tools/code_sizes.py --maps FILE...` reads the objects of the build in build/dev
(`make ext`) and writes src/rushlight/selective/code_sizes.json: code and constants of each source,
loops in the form for one instruction set. A link takes less, as it leaves out what is not used: for
the sources that were linked in measured builds, whose maps `selective_size.py --maps` keeps, the
most that one of them took. Without --maps, these stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from rushlight.selective.link_map import parts_of
from rushlight.selective.sources import Sources, source_root

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "rushlight" / "selective" / "code_sizes.json"
FOLDERS = ("abi", "backends", "core", "delegate", "engine", "events", "kernel", "kernels", "method")
FOLDERS += ("module", "platform", "program", "trace")


def objects(build: Path, isa: str) -> dict[str, Path]:
    """The object of each source below cpp/, and of loops the one for `isa`."""
    paths: dict[str, Path] = {}
    for path in sorted(build.rglob("*.cpp.o")):
        target, _, source = path.as_posix().partition("CMakeFiles/")[2].partition(".dir/")
        name = source.removesuffix(".o").removeprefix("cpp/")
        if "kernels/portable/CMakeFiles" in path.as_posix():
            name = f"kernels/portable/{name}"
        is_loop = re.search(r"^(engine|kernels)/.*loops/", name) is not None
        if name.startswith(FOLDERS) and (not is_loop or target.endswith(f"_{isa}")):
            paths[name] = path
    return paths


def bytes_of(paths: list[Path]) -> list[int]:
    """Code and constants of objects, by `size`; what unwinds stacks is not counted."""
    command = ["size", "-A", *map(str, paths)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sizes = []
    for part in text.split("\n\n\n"):
        rows = re.findall(r"^\.(?:text|rodata|data)\S*\s+(\d+)", part, re.M)
        if part.strip():
            sizes.append(sum(int(row) for row in rows))
    return sizes


def linked(maps: list[Path]) -> dict[str, int]:
    """The most bytes that the builds with these maps took of each source; 0 if none took any."""
    sources = set(Sources(source_root()).includes)
    most: dict[str, int] = {}
    for path in maps:
        loads = re.findall(r"^LOAD \S*?/cpp/(\S+)\.o(?:bj)?$", path.read_text("utf-8"), re.M)
        names = {re.sub(r"^.*/cpp/", "", load) for load in loads}
        taken = {part.name: part.bytes for part in parts_of(path, sources)}
        for name in names & sources:
            most[name] = max(most.get(name, 0), taken.get(name, 0))
    return dict(sorted(most.items()))


def main() -> int:
    """Writes the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "dev")
    parser.add_argument("--isa", default="avx2")
    parser.add_argument("--maps", type=Path, nargs="*", default=[], help="of measured builds")
    arguments = parser.parse_args()
    paths = objects(arguments.build, arguments.isa)
    if not paths:
        print(f"{arguments.build} has no objects: run `make ext` first", file=sys.stderr)
        return 1
    sizes = dict(zip(paths, bytes_of(list(paths.values())), strict=True))
    measured = linked(arguments.maps)
    if not measured:
        measured = json.loads(TABLE.read_text("utf-8"))["linked"]
    table = {"isa": arguments.isa, "files": sizes, "linked": measured}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", "utf-8")
    print(f"{len(sizes)} sources, {sum(sizes.values()):,} bytes: wrote {TABLE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
