"""The gain of calling a kernel of the user's own inside a delegate of the cpu backend.

A chain of linear layers, each with a cheap kernel of the user's own behind it, as one delegate with
the calls inside, and as a delegate for each layer with the calls between them. Both run on one
thread, in turns, and the median of --repeat measurements counts. Compiles the kernel with g++.

  python -m benchmarks own_kernels --layers 8 --width 64 --rows 1,64
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import common
import torch

import rushlight as rl
from rushlight.runtime import include_path

SOURCE = Path(__file__).resolve().parent / "own_kernels" / "clip.cpp"


@rl.custom_op("bench::clip(Tensor x, float most) -> Tensor")
def clip(x: torch.Tensor, most: float) -> torch.Tensor:
    return x.clamp(-most, most)


class Chain(torch.nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = clip(layer(x), 2.0)
        return x


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=31)
    options.add_argument("--layers", type=int, default=8, help="(default: %(default)s)")
    options.add_argument("--width", type=int, default=64, help="(default: %(default)s)")
    options.add_argument("--rows", default="1,64", help="of the input, with commas")
    options.add_argument("--calls", type=int, default=500, help="runs in a measurement")
    arguments = options.parse_args()
    columns = ["rows", "outside, us", "inside, us", "inside / outside"]
    title = f"{arguments.layers} layers of {arguments.width} with a kernel of one's own each"
    report = common.Report(title, columns)
    model = Chain(arguments.layers, arguments.width).eval().requires_grad_(False)
    with common.workshop(arguments.work) as work:
        libraries = [_build(work.folder, inside) for inside in (False, True)]
        for rows in map(int, arguments.rows.split(",")):
            x = torch.randn(rows, arguments.width)
            programs = [rl.export(model, (x,), backend="cpu", kernels=[one]) for one in libraries]
            counts = [sum(one.calls for one in p.report().operators) for p in programs]
            assert counts == [2 * arguments.layers, 1], counts
            modules = [
                rl.load(program.buffer, kernels=[library], threads=1)
                for program, library in zip(programs, libraries, strict=True)
            ]
            times: list[list[float]] = [[], []]
            for _ in range(arguments.repeat):
                for module, measured in zip(modules, times, strict=True):
                    measured.append(_seconds(module, x.numpy(), arguments.calls))
            outside, inside = (common.median(one) * 1e6 for one in times)
            gain = common.ratio(inside, outside)
            report.add(str(rows), f"{outside:.1f}", f"{inside:.1f}", gain)
    report.finish(arguments.json)


def _build(folder: Path, inside: bool) -> Path:
    path = folder / f"libclip{'_inside' if inside else ''}.so"
    flags = ["-std=c++17", "-O3", "-fPIC", "-shared", *(["-DIN_DELEGATES"] if inside else [])]
    command = ["g++", *flags, f"-I{include_path()}", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return path


def _seconds(module: rl.Module, x: object, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        module(x)
    return (time.perf_counter() - start) / calls


if __name__ == "__main__":
    main()
