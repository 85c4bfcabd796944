"""ExecuTorch's own XNNPACK files, run by ExecuTorch and by Rushlight: latency, load and memory.

One file for both, in a process each; they take turns, medians in ms. The results of both are held
to eager's. Loads are Rushlight's (rl), its with a file of packed weights that an earlier load wrote
(packed), and ExecuTorch's (ET).

  python benchmarks/xnnpack_files.py --models mobilenet_v2,minilm --threads 1
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import common
import numpy as np

from rushlight.peers import runtimes
from rushlight.peers.side import Side
from rushlight.peers.turns import middle, take_turns

MODELS = ("mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2")
TOLERANCE = 2e-4  # of the greatest output


def main() -> None:
    options = common.parser(__doc__, models=MODELS, repeat=30)
    options.add_argument(
        "--threads",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2],
        help="numbers of threads, with commas (default: 1,2)",
    )
    arguments = options.parse_args()
    latency = common.Report(
        "Latency, ms: ExecuTorch's XNNPACK files, run by Rushlight and by ExecuTorch",
        ["model", "threads", "rushlight", "ExecuTorch", "ExecuTorch / ours", "least of each"],
    )
    rest = common.Report(
        "File (MB), load (ms), memory of a load and a first run: at its peak, and of no file (MB)",
        [
            *("model", "file"),
            *(f"{what} {by}" for what in ("load", "peak", "own") for by in ("rl", "packed", "ET")),
        ],
    )
    pythons = {"rushlight": sys.executable, "executorch": arguments.executorch}
    with ExitStack() as stack:
        work = stack.enter_context(common.workshop(arguments.work))
        sides = {by: stack.enter_context(_side(by, python)) for by, python in pythons.items()}
        for name in arguments.models:
            pte = str(work.folder / f"{name}.executorch.pte")
            if not Path(pte).exists():
                program = work.traced(name)
                sides["executorch"].call("lower", runtime="executorch", program=program, file=pte)
            for threads in arguments.threads:
                _measure(latency, work, sides, name, pte, threads, arguments.repeat)
            _load(rest, work, pythons, name, pte)
    latency.finish(arguments.json)
    rest.finish(None)


@contextmanager
def _side(by: str, python: str) -> Iterator[Side]:
    """A process of a runtime."""
    with Side(python, Path(runtimes.__file__), threads=2) as side:
        side.call("start", runtime=by)
        yield side


def _check(work: common.Workshop, side: Side, name: str, by: str) -> None:
    """Ends the run if a result is not eager's."""
    out = str(work.folder / "out.npz")
    side.call("outputs", path=out)
    with np.load(work.data(name)) as eager, np.load(out) as outputs:
        worst = np.abs(outputs["out0"] - eager["out0"]).max() / np.abs(eager["out0"]).max()
    if not worst <= TOLERANCE:
        sys.exit(f"{name}: {by} is {worst:.1e} of the greatest output off")


def _measure(
    report: common.Report,
    work: common.Workshop,
    sides: Mapping[str, Side],
    name: str,
    pte: str,
    threads: int,
    repeat: int,
) -> None:
    for by, side in sides.items():
        side.call("open", runtime=by, file=pte, data=work.data(name), threads=threads)
        _check(work, side, name, by)
    times = take_turns(sides, repeat)
    ms = {by: 1e3 * middle(turns) for by, turns in times.items()}
    least = {by: 1e3 * min(map(min, turns)) for by, turns in times.items()}
    report.add(
        name,
        str(threads),
        *(f"{ms[by]:.2f}" for by in sides),
        common.ratio(ms["executorch"], ms["rushlight"]),
        f"{least['rushlight']:.2f} / {least['executorch']:.2f}",
        model=name,
        threads=threads,
        median=ms,
        least=least,
    )


def _load(
    report: common.Report, work: common.Workshop, pythons: Mapping[str, str], name: str, pte: str
) -> None:
    def load(by: str, **options: Any) -> dict[str, float]:
        with _side(by, pythons[by]) as fresh:
            opened: dict[str, float] = fresh.call(
                "open", runtime=by, file=pte, data=work.data(name), threads=1, **options
            )
            return opened

    packed = {"backend_options": {"XnnpackBackend": {"packed_cache_path": f"{pte}.packed"}}}
    load("rushlight", **packed)  # which writes the file, if no earlier run did
    loads = {
        "rushlight": load("rushlight"),
        "packed": load("rushlight", **packed),
        "executorch": load("executorch"),
    }
    report.add(
        name,
        f"{Path(pte).stat().st_size / 1e6:.1f}",
        *(f"{1e3 * loads[by]['seconds']:.1f}" for by in loads),
        *(f"{loads[by][what] / 1e6:.0f}" for what in ("run_peak", "anonymous") for by in loads),
        model=name,
        loads=loads,
    )


if __name__ == "__main__":
    main()
