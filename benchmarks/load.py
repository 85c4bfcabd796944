"""Loading a program with its method: time, and growth of resident memory, beside ExecuTorch.

Every measurement is a fresh process that has done its imports; processes take turns. Files are in
the page cache. "peak" is the growth of the peak resident size until the method is loaded, "after
a call" until its first call has returned, "anonymous" what then is resident and backed by no file.
Each side loads the file that it made; --same gives both the one that ExecuTorch made.

  python benchmarks/load.py --models minilm --repeat 5
"""

from __future__ import annotations

import common

MIB = 1 << 20


def main() -> None:
    # GPT-2 is left out by default: one call of ExecuTorch's portable kernels takes a minute.
    names = [name for name in common.SEVEN if name != "gpt2"]
    options = common.parser(__doc__, models=names, repeat=3)
    options.add_argument("--same", action="store_true", help="both load ExecuTorch's file")
    arguments = options.parse_args()
    report = common.Report(
        "Loading, medians",
        ["model", "by", "ms", "peak MiB", "after a call", "anonymous", "ms ratio", "peak ratio"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        for name in arguments.models:
            theirs = work.program(name, sides.executorch, "executorch")
            ours = theirs if arguments.same else work.program(name, sides.rushlight, "rushlight")
            programs = {"rushlight": ours, "ExecuTorch": theirs}
            _report(report, name, _measure(programs, work.data(name), arguments))
    report.finish(arguments.json)


def _measure(
    programs: dict[str, str], data: str, arguments: common.argparse.Namespace
) -> dict[str, dict[str, float]]:
    figures: dict[str, list[dict[str, float]]] = {by: [] for by in programs}
    for _ in range(arguments.repeat):
        for by, pte in programs.items():
            ours = by == "rushlight"
            side = (
                common.start_rushlight() if ours else common.start_executorch(arguments.executorch)
            )
            with side:
                figures[by].append(side.call("load", pte=pte, data=data))
    return {
        by: {key: common.median(run[key] for run in runs) for key in runs[0]}
        for by, runs in figures.items()
    }


def _report(report: common.Report, name: str, sides: dict[str, dict[str, float]]) -> None:
    for by, figures in sides.items():
        peer = sides["ExecuTorch"]
        ratios = ("", "")
        if by == "rushlight":
            ratios = (
                common.ratio(figures["seconds"], peer["seconds"]),
                common.ratio(figures["peak"], peer["peak"]),
            )
        report.add(
            name,
            by,
            f"{1e3 * figures['seconds']:.2f}",
            f"{figures['peak'] / MIB:.1f}",
            f"{figures['run_peak'] / MIB:.1f}",
            f"{figures['anonymous'] / MIB:.1f}",
            *ratios,
            **{"model": name, "by": by, **figures},
        )


if __name__ == "__main__":
    main()
