"""Bytes of the core runtime without kernels: `python -m benchmarks core_size`.

Builds what a device links that loads a program from memory and runs a method (program, verifier,
method, tables, messages), with -Os, section garbage collection and symbols stripped, for x86-64 and
for Arm Cortex-M55, in two forms: with all parts, and without tracing and failure reports. Prints
the bytes by object, and what a table of backends would add, whose code is linked only where there
is one. Libraries of the compiler (soft floating point, memcpy) count too. Each target has a budget
for each form; the exit status says whether all hold. See docs/size.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = Path(__file__).resolve().parent / "core_size" / "main.cpp"
FOLDERS = ("platform", "core", "trace", "program", "kernel", "delegate", "method")
FLAGS = (
    "-std=c++17 -Os -DNDEBUG -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections "
    "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-threadsafe-statics"
).split()
JOBS = 2
KB = 1024


@dataclass(frozen=True)
class Form:
    name: str
    definitions: tuple[str, ...]


ALL_PARTS = Form("all parts", ())
LEAST = Form(
    "no tracing, no failure reports",
    ("-DRUSHLIGHT_NO_TRACING=1", "-DRUSHLIGHT_NO_FAILURE_REPORTS=1"),
)


@dataclass(frozen=True)
class Target:
    name: str
    compiler: str
    flags: tuple[str, ...]
    link: tuple[str, ...]
    libraries: tuple[str, ...]
    budgets: dict[Form, int]  # in bytes

    def tool(self, name: str) -> str:
        """A program that stands beside the compiler."""
        return self.compiler.removesuffix("g++") + name

    @property
    def is_here(self) -> bool:
        return shutil.which(self.compiler) is not None


X86_64 = Target(
    "x86-64",
    "g++",
    # A shared object: only what is ours, no start-up code and no C library.
    ("-fPIC", "-fvisibility=hidden"),
    ("-shared", "-nostdlib"),
    ("-lgcc",),
    {ALL_PARTS: 46 * KB, LEAST: 40 * KB},
)
CORTEX_M55 = Target(
    "Cortex-M55",
    "arm-none-eabi-g++",
    ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    ("-nostdlib", "-Wl,-e,run_model", "-Wl,--undefined=run_model"),
    ("-lc", "-lgcc"),
    {ALL_PARTS: 35 * KB, LEAST: 30 * KB},
)
TARGETS = (X86_64, CORTEX_M55)
# Addresses that the program's author provides.
IMAGE = "extern const unsigned char program_image[64]; const unsigned char program_image[64] = {0};"
SIZE = "extern const unsigned long program_size; const unsigned long program_size = 64;"


@dataclass(frozen=True)
class Size:
    """What one form takes on one target."""

    code: int  # bytes of code and constants
    zeroed: int  # bytes of memory that starts as zero
    backends: int  # bytes of code that a table of backends adds
    objects: Counter[str]  # the code by object


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def compile_all(target: Target, form: Form, folder: Path) -> tuple[list[Path], Path, Path]:
    """Returns the objects of the runtime, and those of main.cpp without and with backends."""
    (folder / "rushlight").symlink_to(ROOT / "cpp")
    image = folder / "image.cpp"
    image.write_text(f'extern "C" {{\n{IMAGE}\n{SIZE}\n}}\n')
    flags = [*FLAGS, *target.flags, *form.definitions, f"-I{folder}"]
    main_flags = [*flags, "-fvisibility=default"]
    main, main_with_backends = folder / "main.o", folder / "main_with_backends.o"
    commands = [
        (MAIN, main, main_flags),
        (MAIN, main_with_backends, [*main_flags, "-DWITH_BACKENDS=1"]),
        (image, folder / "image.o", flags),
    ]
    for source in (p for f in FOLDERS for p in sorted((ROOT / "cpp" / f).glob("*.cpp"))):
        commands.append((source, folder / f"{source.parent.name}_{source.stem}.o", flags))
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda c: run(target.compiler, *c[2], "-c", c[0], "-o", c[1]), commands))
    return [target_file for _, target_file, _ in commands[2:]], main, main_with_backends


def link(target: Target, objects: list[Path], to: Path) -> tuple[int, int, Counter[str]]:
    """Returns the bytes of code and constants, those of zeroed memory, and the code by object."""
    link_map = to.with_suffix(".map")
    gc = ["-Wl,--gc-sections", "-Wl,-s", "-Wl,--build-id=none", f"-Wl,-Map={link_map}"]
    run(target.compiler, *target.flags, *target.link, *gc, *objects, *target.libraries, "-o", to)
    text, data, bss = run(target.tool("size"), to).splitlines()[1].split()[:3]
    return int(text) + int(data), int(bss), bytes_by_object(link_map)


_SECTION = re.compile(
    r"^ \.(text|rodata|data|init_array|ARM\.ex|bss|COMMON)\S*"
    r"\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S+)$"
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


def measure(target: Target, form: Form) -> Size:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        objects, main, main_with_backends = compile_all(target, form, folder)
        code, zeroed, by_object = link(target, [*objects, main], folder / "core")
        with_backends, _, _ = link(target, [*objects, main_with_backends], folder / "backends")
    return Size(code, zeroed, with_backends - code, by_object)


def report(target: Target, form: Form, size: Size) -> bool:
    """Prints what was measured, and returns whether the budget holds."""
    budget = target.budgets[form]
    print(f"\n{target.name}, {form.name}: {size.code} bytes of code and constants")
    print(f"  {'within' if size.code <= budget else 'MORE THAN'} the budget of {budget} bytes")
    print(f"  {size.zeroed} bytes of zeroed memory; a table of backends adds {size.backends} bytes")
    for item, count in size.objects.most_common():
        print(f"  {count:7}  {item}")
    return size.code <= budget


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    within = True
    for target in TARGETS:
        if not target.is_here:
            print(f"\n{target.name}: not measured, {target.compiler} is not installed")
            continue
        for form in target.budgets:
            within = report(target, form, measure(target, form)) and within
    print(f"\nbudgets: {'kept' if within else 'EXCEEDED'}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
