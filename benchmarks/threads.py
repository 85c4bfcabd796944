"""The gain of more threads: kernels of float32 on one thread and on several, ours and eager's.

The four take turns and the best of --repeat rounds counts. "speedup" is the time on one thread over
that on several. As in `kernels.py`, eager runs the functional operator: its time includes a
dispatch and an allocation.

  python benchmarks/threads.py --threads 2 --size 65536,1048576
"""

from __future__ import annotations

import common
import kernels
import torch
from cases.kernel_cases import Inputs

# Operators and notes of cases in kernel_cases.py.
TIMED = (
    ("aten::add.out", ""),
    ("aten::exp.out", ""),
    ("aten::_softmax.out", "rows"),
    ("aten::mm.out", ""),
    ("aten::native_layer_norm.out", ""),
    ("aten::permute_copy.out", "heads, transposed"),
    ("aten::sum.IntList_out", "rows"),
    ("aten::sum.IntList_out", "all"),
)


def main() -> None:
    options = common.parser(__doc__, models=(), repeat=15)
    options.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    options.add_argument(
        "--size", type=kernels.words, default=["65536", "1048576"], help="elements, with commas"
    )
    arguments = options.parse_args()
    columns = [
        f"{by}, {n}" for by in ("ours", "eager") for n in ("1", arguments.threads, "speedup")
    ]
    report = common.Report(
        f"Microseconds on 1 and on {arguments.threads} threads", ["operator", "elements", *columns]
    )
    cases = {(case.op, case.note): case for case in kernels.sized_cases()}
    with torch.no_grad():
        for size in map(int, arguments.size):
            for op, note in TIMED:
                call = kernels.Call(cases[op, note], Inputs(size, torch.float32))
                seconds = measure(call, arguments.threads, arguments.repeat)
                _report(report, f"{op} {note}", size, arguments.threads, seconds)
    report.finish(arguments.json)


def measure(call: kernels.Call, threads: int, rounds: int) -> dict[str, float]:
    """Best microseconds of ours and eager's, by name and number of threads: ``ours 1``."""

    def eager(count: int) -> kernels.Timed:
        def timed(repeats: int) -> float:
            torch.set_num_threads(count)
            call.run()  # the first run starts the threads
            return call.eager(repeats)

        return timed

    calls: dict[str, kernels.Timed | None] = {}
    for count in (1, threads):
        calls[f"ours {count}"] = call.native(None, count)
        calls[f"eager {count}"] = eager(count)
    return kernels.best(calls, rounds)


def _report(
    report: common.Report, name: str, size: int, threads: int, seconds: dict[str, float]
) -> None:
    cells = []
    for by in ("ours", "eager"):
        one, many = seconds[f"{by} 1"], seconds[f"{by} {threads}"]
        cells += [f"{one:.1f}", f"{many:.1f}", f"{one / many:.2f}"]
    report.add(name, f"{size}", *cells, operator=name, elements=size, threads=threads, **seconds)


if __name__ == "__main__":
    main()
