"""Compares two builds of Rushlight, run in turns: the cost or gain of a change.

The other build is a checkout with an environment of its own (`git clone`, `git checkout`,
`make ext`). Each build lowers the same traced program in its own process, which gives the CPU
seconds of an export, and both files then run in turns, as in `engine.py`. A case is a model, with a
recipe that this build quantises it by (`model:recipe`), and with another backend than cpu
(`model@backend`). Ratios are the other build's time to this one's;
below 1 this one is slower.

  python -m benchmarks builds --other ../before --models minilm,minilm@portable --threads 1
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import common
from quantized import quantized_program

from rushlight.peers.side import Side, SideError
from rushlight.peers.turns import middle, take_turns

CASES = (
    *("mobilenet_v2", "resnet50", "vit_b16", "minilm", "gpt2", "lstm2", "unet"),
    *("mobilenet_v2@portable", "resnet50@portable", "minilm@portable", "unet@portable"),
    *("mobilenet_v2@xnnpack", "minilm@xnnpack"),
    *("mobilenet_v2:int8", "resnet50:int8", "minilm:int8-dynamic", "minilm:int4-dynamic"),
    *("gpt2:int8-dynamic", "mobilenet_v2:int8@xnnpack"),
)
SIDE = common.ROOT / "benchmarks" / "sides" / "build_side.py"


def main() -> None:
    options = common.parser(__doc__, models=CASES, repeat=20)
    options.add_argument("--other", type=Path, required=True, help="a checkout that is built")
    options.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    options.add_argument("--exports", type=int, default=3, help="of each (default: %(default)s)")
    arguments = options.parse_args()
    checkouts = {"this": common.ROOT, "other": arguments.other.resolve()}
    report = common.Report(
        "The other build's time to this one's",
        ["case", "other ms", "this ms", "run", "other CPU s", "this CPU s", "export"],
    )
    ratios: dict[str, list[float]] = {"run": [], "export": []}
    with common.workshop(arguments.work) as work, ExitStack() as stack:
        sides = {}
        for by, checkout in checkouts.items():
            python = sys.executable if by == "this" else str(checkout / ".venv" / "bin" / "python")
            sides[by] = stack.enter_context(Side(python, SIDE, threads=arguments.threads))
            sides[by].call("start", runtime="rushlight")
        for case in arguments.models:
            exports, runs = _measure(
                work, sides, case, arguments.threads, arguments.repeat, arguments.exports
            )
            run, export = runs["other"] / runs["this"], exports["other"] / exports["this"]
            ratios["run"].append(run)
            ratios["export"].append(export)
            report.add(
                *(case, f"{runs['other'] * 1e3:.3f}", f"{runs['this'] * 1e3:.3f}", f"{run:.3f}x"),
                *(f"{exports['other']:.2f}", f"{exports['this']:.2f}", f"{export:.2f}x"),
                case=case,
                run=runs,
                export=exports,
            )
    means = {
        by: math.exp(sum(map(math.log, values)) / len(values)) for by, values in ratios.items()
    }
    report.add("geometric mean", "", "", f"{means['run']:.3f}x", "", "", f"{means['export']:.3f}x")
    report.finish(arguments.json)


def _measure(
    work: common.Workshop,
    sides: Mapping[str, Side],
    case: str,
    threads: int,
    turns: int,
    exports: int,
) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds of an export, and seconds of a call, of each build."""
    model, _, backend = case.partition("@")
    name, _, recipe = model.partition(":")
    program = quantized_program(work, name, recipe) if recipe else work.traced(name)
    seconds: dict[str, list[float]] = {by: [] for by in sides}
    files = {by: str(work.folder / f"{case}.{by}.pte") for by in sides}
    for _ in range(exports):
        for by, side in sides.items():
            lowered = side.call(
                *("lower",), runtime="rushlight", program=program, file=files[by],
                backend=backend or "cpu",
            )  # fmt: skip
            seconds[by].append(lowered["cpu"])
    for by, side in sides.items():
        side.call(
            *("open",), runtime="rushlight", file=files[by], data=work.data(name), threads=threads
        )
    times = take_turns(sides, turns)
    return {by: min(values) for by, values in seconds.items()}, {
        by: middle(times[by]) for by in sides
    }


if __name__ == "__main__":
    try:
        main()
    except SideError as error:
        sys.exit(str(error))
