"""The cpu backend beside ExecuTorch with XNNPACK: latency, load, memory and export.

Each engine in its own process; they take turns call by call, medians in ms. The results of both are
held to eager's. Export is the lowering of the same traced program, in CPU seconds.

  python benchmarks/engine.py --models mobilenet_v2,minilm --threads 1
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
        "Latency, ms: the cpu backend and ExecuTorch with XNNPACK",
        ["model", "threads", "rushlight", "ExecuTorch", "ExecuTorch / ours", "least of each"],
    )
    rest = common.Report(
        "Export (CPU s), file (MB), load (ms), memory after load and at its peak (MB)",
        [
            "model",
            *(f"{w} {by}" for w in ("export", "file", "load", "peak") for by in ("rl", "ET")),
        ],
    )
    with ExitStack() as stack:
        work = stack.enter_context(common.workshop(given.work))
        sides = stack.enter_context(common.both_sides(given.executorch))
        for name in given.models:
            files, exported = _programs(work, sides, name)
            _check(work, sides, name, files)
            for threads in given.threads:
                _measure(latency, work, sides, name, files, threads, given.repeat)
            _load(rest, work, name, files, exported, given.executorch)
    latency.finish(given.json)
    rest.finish(None)


Files = dict[str, str]


def _programs(
    work: common.Workshop, sides: common.Sides, name: str
) -> tuple[Files, dict[str, float]]:
    """Both files, and the CPU seconds that they took."""
    files, seconds = {}, {}
    for by, engine, options in (
        ("rl", sides.rushlight, {"backend": "cpu"}),
        ("ET", sides.executorch, {"xnnpack": True}),
    ):
        files[by] = str(work.folder / f"{name}.{by}.cpu.pte")
        found = engine.call("export", program=work.traced(name), pte=files[by], **options)
        seconds[by] = found["cpu"]
    return files, seconds


def _check(work: common.Workshop, sides: common.Sides, name: str, files: Files) -> None:
    """Ends the run if a result is not eager's."""
    with np.load(work.data(name)) as arrays:
        eager = arrays["out0"]
    out = str(work.folder / "out.npz")
    for by, engine in (("rl", sides.rushlight), ("ET", sides.executorch)):
        engine.call("run", pte=files[by], data=work.data(name), outputs=out)
        with np.load(out) as arrays:
            worst = np.abs(arrays["out0"] - eager).max() / np.abs(eager).max()
        if worst > TOLERANCE:
            sys.exit(f"{name}: {by} is {worst:.1e} of the greatest output off")


def _measure(
    report: common.Report,
    work: common.Workshop,
    sides: common.Sides,
    name: str,
    files: Files,
    threads: int,
    repeat: int,
) -> None:
    engines = {"rl": sides.rushlight, "ET": sides.executorch}
    for engine in engines.values():
        engine.call("threads", count=threads)
    times: dict[str, list[float]] = {"rl": [], "ET": []}
    for turn in range(repeat + 2):
        for by, engine in engines.items():
            found = engine.call("latency", pte=files[by], data=work.data(name), calls=1, warmup=0)
            if turn >= 2:
                times[by] += found
    middle = {by: 1e3 * common.median(found) for by, found in times.items()}
    least = {by: 1e3 * min(found) for by, found in times.items()}
    report.add(
        name,
        str(threads),
        *(f"{middle[by]:.2f}" for by in engines),
        common.ratio(middle["ET"], middle["rl"]),
        f"{least['rl']:.2f} / {least['ET']:.2f}",
        model=name,
        threads=threads,
        median=middle,
        least=least,
    )


def _load(
    report: common.Report,
    work: common.Workshop,
    name: str,
    files: Files,
    exported: dict[str, float],
    executorch: str,
) -> None:
    loads = {}
    for by, start in (
        ("rl", common.start_rushlight),
        ("ET", lambda: common.start_executorch(executorch)),
    ):
        with start() as fresh:
            loads[by] = fresh.call("load", pte=files[by], data=work.data(name))
    sizes = {by: Path(file).stat().st_size for by, file in files.items()}
    report.add(
        name,
        *(f"{exported[by]:.1f}" for by in files),
        *(f"{sizes[by] / 1e6:.1f}" for by in files),
        *(f"{1e3 * loads[by]['seconds']:.2f}" for by in files),
        *(f"{loads[by]['run_peak'] / 1e6:.0f}" for by in files),
        model=name,
    )


if __name__ == "__main__":
    main()
