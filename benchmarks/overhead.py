"""The overhead of a call: programs of 1 and of 50 additions of four numbers.

From Python, on one thread; processes take turns. The slope is the price of one more operator.
ExecuTorch is called as `method.execute([x, y])` with torch tensors, ours as `module(x, y)` with
NumPy arrays and with torch tensors.

  python benchmarks/overhead.py --repeat 7 --calls 20000
"""

from __future__ import annotations

import common

SHORT, LONG = "chain_1", "chain_50"
EXTRA = 49


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=7)
    options.add_argument("--calls", type=int, default=20_000, help="calls in a measurement")
    arguments = options.parse_args()
    report = common.Report(
        "Call overhead, medians",
        ["caller", "1 op, µs", "50 ops, µs", "ns per further op", "best 1 op, µs"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        for caller, times in _measure(work, sides, arguments.repeat, arguments.calls).items():
            short, long = (1e6 * common.median(times[name]) for name in (SHORT, LONG))
            slope = 1e3 * (long - short) / EXTRA
            best = 1e6 * min(times[SHORT])
            report.add(
                caller,
                f"{short:.2f}",
                f"{long:.2f}",
                f"{slope:.0f}",
                f"{best:.2f}",
                caller=caller,
                one_us=short,
                fifty_us=long,
                slope_ns=slope,
                best_one_us=best,
            )
    report.finish(arguments.json)


def _measure(
    work: common.Workshop, sides: common.Sides, repeat: int, calls: int
) -> dict[str, dict[str, list[float]]]:
    callers = {
        "rushlight, NumPy": (sides.rushlight, "rushlight", {"kind": "numpy"}),
        "rushlight, torch": (sides.rushlight, "rushlight", {"kind": "torch"}),
        "ExecuTorch, torch": (sides.executorch, "executorch", {}),
    }
    times: dict[str, dict[str, list[float]]] = {c: {SHORT: [], LONG: []} for c in callers}
    for _ in range(repeat):
        for name in (SHORT, LONG):
            for caller, (side, by, extra) in callers.items():
                pte, data = work.program(name, side, by), work.data(name)
                seconds = side.call("overhead", pte=pte, data=data, calls=calls, **extra)
                times[caller][name].append(seconds)
    return times


if __name__ == "__main__":
    main()
