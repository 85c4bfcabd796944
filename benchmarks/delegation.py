"""How long export with delegation takes, beside ExecuTorch: from a traced program to the file.

On both sides a partitioner takes all operators but one kind, and `preprocess` stores nothing, so
that partitioning, cutting out and what is left to lower are timed, and no compiler. Operators that
stay out cut the graph: none (one delegate), or those that make many. CPU seconds, in turn, medians.

  python benchmarks/delegation.py --models mobilenet_v2 --repeat 1
"""

from __future__ import annotations

import common

MODELS = ("mobilenet_v2", "bert_base")
NOTHING = "no such operator"
LEFT_OUT = {"mobilenet_v2": "hardtanh", "bert_base": "layer_norm"}


def main() -> None:
    arguments = common.parser(__doc__, models=MODELS, repeat=3).parse_args()
    report = common.Report(
        "Export with delegation, CPU seconds on one thread",
        ["model", "left out", "delegates", "rushlight", "ExecuTorch", "ratio", "their delegates"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        for side in (sides.rushlight, sides.executorch):  # imports and caches
            pte = str(work.folder / "warm.pte")
            side.call("delegate", program=work.traced("add"), pte=pte, leave=NOTHING)
        for name in arguments.models:
            for leave in (NOTHING, LEFT_OUT.get(name, "relu")):
                _row(report, name, leave, work, sides, arguments.repeat)
    report.finish(arguments.json)


def _row(
    report: common.Report,
    name: str,
    leave: str,
    work: common.Workshop,
    sides: common.Sides,
    repeat: int,
) -> None:
    times: dict[str, list[float]] = {"rushlight": [], "executorch": []}
    counts = {}
    for _ in range(repeat):
        for by in times:
            figures = getattr(sides, by).call(
                "delegate",
                program=work.traced(name),
                pte=str(work.folder / f"{name}.{by}.delegated.pte"),
                leave=leave,
            )
            times[by].append(figures["cpu"])
            counts[by] = figures["delegates"]
    ours, theirs = (common.median(times[by]) for by in times)
    shown = "nothing" if leave == NOTHING else leave
    report.add(
        name,
        shown,
        str(counts["rushlight"]),
        f"{ours:.2f}",
        f"{theirs:.2f}",
        common.ratio(ours, theirs),
        str(counts["executorch"]),
        model=name,
        left_out=shown,
        delegates=counts,
        ours=ours,
        theirs=theirs,
    )


if __name__ == "__main__":
    main()
