"""Bytes of the core runtime without kernels: `python benchmarks/core_size.py`.

Builds what a device links that loads a program from memory and runs a method (program, verifier,
method, tables, messages), with -Os, section garbage collection and symbols stripped, for x86-64 and
for Arm Cortex-M55, and prints the bytes by object. The budget is 50 KB for each; the exit status
says whether it holds. Libraries of the compiler (division, soft floating point, memcpy) count too.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = Path(__file__).resolve().parent / "core_size" / "main.cpp"
FOLDERS = ("platform", "core", "events", "program", "kernel", "delegate", "method")
BUDGET = 50_000
FLAGS = (
    "-std=c++17 -Os -DNDEBUG -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections "
    "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-threadsafe-statics"
).split()


@dataclass(frozen=True)
class Target:
    name: str
    compiler: str
    size: str
    flags: tuple[str, ...]
    link: tuple[str, ...]


TARGETS = (
    # A shared object: only what is ours, no start-up code and no C library.
    Target("x86-64", "g++", "size", ("-fPIC", "-fvisibility=hidden"), ("-shared", "-nostdlib")),
    Target(
        "Cortex-M55",
        "arm-none-eabi-g++",
        "arm-none-eabi-size",
        ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
        ("-nostdlib", "-Wl,-e,run_model", "-Wl,--undefined=run_model"),
    ),
)
# Addresses that the program's author provides.
IMAGE = "extern const unsigned char program_image[64]; const unsigned char program_image[64] = {0};"
SIZE = "extern const unsigned long program_size; const unsigned long program_size = 64;"


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def build(target: Target, folder: Path) -> tuple[Path, Path]:
    """Returns the linked file and its map."""
    (folder / "rushlight").symlink_to(ROOT / "cpp")
    image = folder / "image.cpp"
    image.write_text(f'extern "C" {{\n{IMAGE}\n{SIZE}\n}}\n')
    sources = [p for f in FOLDERS for p in sorted((ROOT / "cpp" / f).glob("*.cpp"))]
    objects = []
    for source in [*sources, MAIN, image]:
        name = "image.o" if source == image else f"{source.parent.name}_{source.stem}.o"
        visible = ["-fvisibility=default"] if source == MAIN else []
        flags = [*FLAGS, *target.flags, *visible, f"-I{folder}"]
        run(target.compiler, *flags, "-c", source, "-o", folder / name)
        objects.append(folder / name)
    linked, link_map = folder / "core", folder / "map"
    gc = ["-Wl,--gc-sections", "-Wl,-s", f"-Wl,-Map={link_map}"]
    libraries = ["-lgcc"] if target.name == "x86-64" else ["-lc", "-lgcc"]
    run(target.compiler, *target.flags, *target.link, *gc, *objects, *libraries, "-o", linked)
    return linked, link_map


_SECTION = re.compile(
    r"^ \.(text|rodata|data|init_array|ARM|bss|COMMON)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S+)$"
)


def bytes_by_object(link_map: Path) -> Counter[str]:
    """Bytes of code and constants that each object and library brought, from the linker's map."""
    text = link_map.read_text()
    text = text[text.index("Linker script and memory map") :]
    text = re.sub(
        r"\n (\.[^\s]+)\n\s+0x", r"\n \1 0x", text
    )  # long names stand on a line of their own
    sizes: Counter[str] = Counter()
    for line in text.splitlines():
        match = _SECTION.match(line)
        if match and match.group(1) not in ("bss", "COMMON"):
            sizes[re.sub(r".*/", "", match.group(3))] += int(match.group(2), 16)
    return +sizes


def measure(target: Target) -> int:
    with tempfile.TemporaryDirectory() as name:
        linked, link_map = build(target, Path(name))
        columns = run(target.size, linked).splitlines()[1].split()
        text, data, bss = (int(c) for c in columns[:3])
        print(f"\n{target.name}: {text + data} bytes of code and constants, {bss} of zeroed memory")
        for item, size in bytes_by_object(link_map).most_common():
            print(f"  {size:7}  {item}")
    return text + data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    within = True
    for target in TARGETS:
        if shutil.which(target.compiler) is None:
            print(f"\n{target.name}: not measured, {target.compiler} is not installed")
            continue
        within = measure(target) <= BUDGET and within
    print(f"\nbudget: {BUDGET} bytes each: {'kept' if within else 'EXCEEDED'}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
