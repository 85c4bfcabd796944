"""Planned memory: arena bytes beside the lower bound (peak of live bytes) and ExecuTorch's plan.

Both sides lower the same traced program for their portable kernels, each with its own passes; so
the lower bound is that of our graph, and ExecuTorch's plan may hold values that we do not have.

  python benchmarks/memory_plan.py --models vit_b16
"""

from __future__ import annotations

import common


def main() -> None:
    arguments = common.parser(__doc__, models=common.SEVEN, repeat=1).parse_args()
    report = common.Report(
        "Planned arenas, bytes",
        ["model", "rushlight", "lower bound", "above it", "ExecuTorch", "ratio", "found by"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        for name in arguments.models:
            ours = sides.rushlight.call("plan", program=work.traced(name))
            pte = work.program(name, sides.executorch, "executorch")
            total = sum(ours["arenas"].values())
            bound = sum(ours["lower_bound"].values())
            theirs = sum(sides.executorch.call("plan", pte=pte).values())
            report.add(
                name,
                f"{total:,}",
                f"{bound:,}",
                f"{100 * (total / bound - 1):.2f} %",
                f"{theirs:,}",
                common.ratio(total, theirs),
                ours["strategy"],
                model=name,
                rushlight=total,
                lower_bound=bound,
                executorch=theirs,
                strategy=ours["strategy"],
            )
    report.finish(arguments.json)


if __name__ == "__main__":
    main()
