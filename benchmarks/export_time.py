"""How long export takes, beside ExecuTorch: from a traced program to the bytes of the file.

Both sides get the same file of `torch.export.save` and run
`to_edge_transform_and_lower(program).to_executorch().buffer`, in turn; CPU seconds, medians.
Tracing is not counted; our check against eager (`verify=True`) is timed apart with --verify.

  python benchmarks/export_time.py --models mobilenet_v2,minilm --repeat 1
"""

from __future__ import annotations

import common

GOAL = 1 / 3


def main() -> None:
    options = common.parser(__doc__, models=common.SEVEN, repeat=3)
    options.add_argument("--verify", action="store_true", help="time a checked export, too")
    arguments = options.parse_args()
    report = common.Report(
        "Export, CPU seconds on one thread",
        ["model", "rushlight", "ExecuTorch", "ratio", f"goal {GOAL:.2f}x", "with verify"],
    )
    with common.workshop(arguments.work) as work, common.both_sides(arguments.executorch) as sides:
        warm = work.traced("add")
        for side in (sides.rushlight, sides.executorch):  # imports and caches
            side.call("export", program=warm, pte=str(work.folder / "warm.pte"))
        for name in arguments.models:
            row = _measure(name, work, sides, arguments.repeat)
            verified = None
            if arguments.verify:
                verified = sides.rushlight.call("verify", program=work.traced(name))["cpu"]
            ours, theirs = row["rushlight"], row["executorch"]
            report.add(
                name,
                f"{ours:.2f}",
                f"{theirs:.2f}",
                common.ratio(ours, theirs),
                "met" if ours <= GOAL * theirs else "missed",
                "-" if verified is None else f"{verified:.2f}",
                **{"model": name, **row, "verified": verified},
            )
    report.finish(arguments.json)


def _measure(
    name: str, work: common.Workshop, sides: common.Sides, repeat: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {"rushlight": [], "executorch": []}
    for _ in range(repeat):
        for by in times:
            pte = work.folder / f"{name}.{by}.pte"
            figures = getattr(sides, by).call("export", program=work.traced(name), pte=str(pte))
            times[by].append(figures["cpu"])
    return {by: common.median(values) for by, values in times.items()}


if __name__ == "__main__":
    main()
