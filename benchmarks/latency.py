"""Latency without any delegate: our portable kernels, eager PyTorch, ExecuTorch's portable kernels.

One thread each; engines take turns call by call, each in its own process; medians in ms. "whole"
is ours with attention and RMS norm kept whole. An engine that has used up --seconds on a model is
not called again, so that ExecuTorch's slowest models (a minute a call) are measured once; such
figures carry the number of calls.

  python benchmarks/latency.py --models minilm,mobilenet_v2
  python benchmarks/latency.py --engines rushlight,eager
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack

import common

ENGINES = ("rushlight", "whole", "eager", "executorch")
Latency = Callable[[int], list[float]]


def main() -> None:
    options = common.parser(__doc__, models=common.SEVEN, repeat=10)
    options.add_argument(
        "--engines",
        type=lambda text: text.split(","),
        default=list(ENGINES),
        help="which to measure, with commas (default: all)",
    )
    options.add_argument(
        "--seconds", type=float, default=20.0, help="time for an engine and a model"
    )
    arguments = options.parse_args()
    report = common.Report(
        "Latency on one thread, ms",
        [
            *("model", "rushlight", "whole attention", "eager", "ExecuTorch"),
            *("ours / eager", "ours / ExecuTorch"),
        ],
    )
    with ExitStack() as stack:
        work = stack.enter_context(common.workshop(arguments.work))
        sides = stack.enter_context(common.both_sides(arguments.executorch))
        torch_side = stack.enter_context(common.start_rushlight())
        for name in arguments.models:
            engines = _engines(name, work, sides, torch_side)
            chosen = {by: call for by, call in engines.items() if by in arguments.engines}
            times = measure(chosen, arguments.repeat, arguments.seconds)
            _report(report, name, times)
    report.finish(arguments.json)


def _engines(
    name: str, work: common.Workshop, sides: common.Sides, torch_side: common.Side
) -> dict[str, Latency]:
    def program(side: common.Side, by: str, **options: bool) -> Latency:
        def call(calls: int) -> list[float]:
            pte, data = work.program(name, side, by, **options), work.data(name)
            return side.call("latency", pte=pte, data=data, calls=calls, warmup=0)

        return call

    return {
        "rushlight": program(sides.rushlight, "rushlight"),
        "whole": program(sides.rushlight, "whole", whole=True),
        "eager": lambda calls: torch_side.call("eager", model=name, calls=calls, warmup=0),
        "executorch": program(sides.executorch, "executorch"),
    }


def measure(engines: dict[str, Latency], repeat: int, seconds: float) -> dict[str, list[float]]:
    """Call the engines in turn; the first call warms up, and counts only if it is all there is."""
    times = {by: call(1) for by, call in engines.items()}
    spent = {by: sum(first) for by, first in times.items()}
    for by in engines:
        if spent[by] < seconds / 2:
            times[by] = []
    for _ in range(repeat):
        for by, call in engines.items():
            if spent[by] < seconds or not times[by]:
                measured = call(1)
                times[by] += measured
                spent[by] += sum(measured)
    return times


def _report(report: common.Report, name: str, seconds: dict[str, list[float]]) -> None:
    middle = {by: 1e3 * common.median(times) for by, times in seconds.items()}
    most = max(map(len, seconds.values()))

    def cell(by: str) -> str:
        if by not in seconds:
            return "-"
        calls = len(seconds[by])
        return f"{middle[by]:.2f}" + (f" ({calls} calls)" if calls < most else "")

    def share(by: str) -> str:
        return common.ratio(middle["rushlight"], middle[by]) if by in middle else "-"

    ratios = (share("eager"), share("executorch")) if "rushlight" in middle else ("-", "-")
    report.add(name, *map(cell, ENGINES), *ratios, model=name, **middle)


if __name__ == "__main__":
    sys.exit(main())
