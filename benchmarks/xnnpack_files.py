"""ExecuTorch's own XNNPACK files, run by ExecuTorch and by Rushlight: latency, load and memory.

One file for both, in a process each; they take turns call by call, medians in ms. The results of
both are held to eager's.

  python benchmarks/xnnpack_files.py --models mobilenet_v2,minilm --threads 1
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import common
import numpy as np

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
    given = options.parse_args()
    latency = common.Report(
        "Latency, ms: ExecuTorch's XNNPACK files, run by Rushlight and by ExecuTorch",
        ["model", "threads", "rushlight", "ExecuTorch", "ExecuTorch / ours", "least of each"],
    )
    rest = common.Report(
        "File (MB), load (ms), memory of a load and a first run: at its peak, and of no file (MB)",
        ["model", "file", *(f"{w} {by}" for w in ("load", "peak", "own") for by in ("rl", "ET"))],
    )
    with ExitStack() as stack:
        work = stack.enter_context(common.workshop(given.work))
        sides = stack.enter_context(common.both_sides(given.executorch))
        for name in given.models:
            pte = work.program(name, sides.executorch, "ET.xnnpack", xnnpack=True)
            _check(work, sides, name, pte)
            for threads in given.threads:
                _measure(latency, work, sides, name, pte, threads, given.repeat)
            _load(rest, work, name, pte, given.executorch)
    latency.finish(given.json)
    rest.finish(None)


def _check(work: common.Workshop, sides: common.Sides, name: str, pte: str) -> None:
    """Ends the run if a result is not eager's."""
    with np.load(work.data(name)) as arrays:
        eager = arrays["out0"]
    out = str(work.folder / "out.npz")
    for by, side in (("Rushlight", sides.rushlight), ("ExecuTorch", sides.executorch)):
        side.call("run", pte=pte, data=work.data(name), outputs=out)
        with np.load(out) as arrays:
            worst = np.abs(arrays["out0"] - eager).max() / np.abs(eager).max()
        if worst > TOLERANCE:
            sys.exit(f"{name}: {by} is {worst:.1e} of the greatest output off")


def _measure(
    report: common.Report,
    work: common.Workshop,
    sides: common.Sides,
    name: str,
    pte: str,
    threads: int,
    repeat: int,
) -> None:
    both = {"rl": sides.rushlight, "ET": sides.executorch}
    for side in both.values():
        side.call("threads", count=threads)
    times: dict[str, list[float]] = {by: [] for by in both}
    for turn in range(repeat + 2):
        for by, side in both.items():
            found = side.call("latency", pte=pte, data=work.data(name), calls=1, warmup=0)
            if turn >= 2:
                times[by] += found
    middle = {by: 1e3 * common.median(found) for by, found in times.items()}
    least = {by: 1e3 * min(found) for by, found in times.items()}
    report.add(
        name,
        str(threads),
        *(f"{middle[by]:.2f}" for by in both),
        common.ratio(middle["ET"], middle["rl"]),
        f"{least['rl']:.2f} / {least['ET']:.2f}",
        model=name,
        threads=threads,
        median=middle,
        least=least,
    )


def _load(
    report: common.Report, work: common.Workshop, name: str, pte: str, executorch: str
) -> None:
    loads = {}
    for by, start in (
        ("rl", common.start_rushlight),
        ("ET", lambda: common.start_executorch(executorch)),
    ):
        with start() as fresh:
            loads[by] = fresh.call("load", pte=pte, data=work.data(name))
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
