"""Size and speed of selective builds: `python -m benchmarks.tools.selective_size`.

Builds a runtime by `rushlight build` for each of three models, for one instruction set, and prints
the bytes of linked code and constants beside their goal, by operator, and what `rushlight size`
says before. With --times, an application linked to the full build in build/dev runs the same
program in turns with one that is linked to the selective build, on one thread: the median over
rounds of the ratio of their fastest runs. The exit status says whether the goals hold.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from benchmarks import models

import rushlight as rl
from rushlight.selective.build import build
from rushlight.selective.estimate import needs_of
from rushlight.selective.selection import Options

ROOT = Path(__file__).resolve().parents[2]
KB = 1024
_SECONDS = 0.2  # that a turn lasts


def _mlp() -> models.Case:
    torch.manual_seed(models.SEED)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    layers = [linear(784, 128), relu(), linear(128, 64), relu(), linear(64, 10)]
    return models.Case(torch.nn.Sequential(*layers).eval(), (torch.randn(1, 784),), {}, None)


# The model, how it is exported, and the most bytes.
GOALS: dict[str, tuple[Callable[[], models.Case], dict[str, Any], int]] = {
    "mlp": (_mlp, {"backend": "portable"}, 70 * KB),
    "mobilenet_v2": (
        partial(models.build, "mobilenet_v2"),
        {"backend": "cpu", "quantize": "int8"},
        250 * KB,
    ),
    "minilm": (partial(models.build, "minilm"), {"backend": "cpu"}, 300 * KB),
}
TIMER = """
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rushlight/module/module.h"

int main(int, char** argv) {
  rushlight::ModuleOptions options;
  options.threads = 1;
  rushlight::Module module;
  if (!module.open(argv[1], options).ok()) return 1;
  auto loaded = module.method("forward");
  if (!loaded.ok()) return std::fprintf(stderr, "%s", module.message().text()), 1;
  rushlight::Method& method = *loaded.value();
  std::vector<std::vector<char>> bytes;
  double fastest = 1e30;
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> enough(std::atof(argv[2]));
  for (int run = 0; run < 5 || std::chrono::steady_clock::now() - begin < enough; ++run) {
    for (size_t i = 0; i < method.n_inputs(); ++i) {
      rushlight::Tensor tensor = method.input(i).tensor();
      bytes.emplace_back(tensor.nbytes());
      tensor.data = bytes.back().data();
      if (!method.set_input(i, tensor).ok()) return std::fprintf(stderr, "input"), 1;
    }
    const auto start = std::chrono::steady_clock::now();
    if (!method.execute().ok()) return std::fprintf(stderr, "%s", method.message().text()), 1;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (time.count() < fastest) fastest = time.count();
    bytes.clear();
  }
  std::printf("%.9f", fastest);
}
"""


def export(name: str, path: Path) -> None:
    """Exports one of `GOALS`."""
    model, options, _ = GOALS[name]
    case = model()
    if "quantize" in options:
        options = {**options, "calibrate": [case.args]}
    program = rl.export(case.module, case.args, case.kwargs or None, verify=False, **options)
    program.save(path)


def application(libraries: list[str], include: Path, folder: Path, name: str) -> Path:
    """A program that times another, linked to these libraries."""
    source, binary = folder / f"{name}.cpp", folder / name
    source.write_text(TIMER)
    command = ["c++", "-std=c++17", "-O2", f"-I{include}", str(source), "-Wl,--gc-sections"]
    command += ["-Wl,--start-group", *libraries, "-Wl,--end-group", "-lpthread", "-ldl"]
    subprocess.run([*command, "-o", str(binary)], check=True)
    return binary


def ratio(selective: Path, whole: Path, program: Path, isa: str, rounds: int) -> float:
    """The time of the selective build, as a multiple of that of the full one."""

    def fastest(binary: Path) -> float:
        command = [str(binary), str(program), str(_SECONDS)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"RUSHLIGHT_CPU": isa}
        )
        return float(done.stdout)

    ratios = []
    for turn in range(rounds):
        pair = (selective, whole) if turn % 2 == 0 else (whole, selective)
        times = {binary: fastest(binary) for binary in pair}
        ratios.append(times[selective] / times[whole])
    return statistics.median(ratios)


def main() -> int:
    """Measures; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isa", default="avx2", help="one instruction set, or all")
    parser.add_argument("--models", default=",".join(GOALS))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--maps", type=Path, help="a folder that gets the linker's maps")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    holds = True
    for name in arguments.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            program, out = Path(folder) / f"{name}.pte", Path(folder) / "app"
            export(name, program)
            kept = arguments.maps / f"{name}.map" if arguments.maps else None
            rows = build([program], Options("app", arguments.isa), out, keep_map=kept)
            size, goal = sum(row.bytes for row in rows), GOALS[name][2]
            expected = sum(needs_of([program]).code.values())
            line = f"{name:14} {size:9,} bytes, goal {goal:9,}, `rushlight size` {expected:,}"
            if arguments.times:
                dev = ROOT / "build" / "dev"
                whole = [str(path) for path in sorted(dev.rglob("librushlight*.a"))]
                binaries = [
                    application([str(out / "lib" / "libapp.a")], out / "include",
                                Path(folder), "selective"),
                    application(whole, dev / "include", Path(folder), "whole"),
                ]  # fmt: skip
                times = ratio(*binaries, program, arguments.isa, arguments.rounds)
                line += f", {times:.3f} of the full build's time"
            print(line, flush=True)
            for row in rows:
                print(f"    {row.bytes:8,}  {row.name}")
            holds = holds and (arguments.isa == "all" or size <= goal)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
