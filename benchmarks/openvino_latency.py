"""Models delegated to OpenVINO by us, beside OpenVINO itself on the same captured model.

OpenVINO's own side is `openvino.convert_model(exported_program)`, compiled with the same properties
and run with shared memory. Both are in one process and take turns call by call; medians of wall and
of CPU time, which other work on the machine disturbs less. Export is timed in CPU seconds, from the
captured model to a file, beside OpenVINO's conversion to one.

  python benchmarks/openvino_latency.py --models minilm --threads 1
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
from side import ROOT

GOAL = 1.05
PYTHON = ROOT / ".venv-backends" / "bin" / "python"


def main() -> None:
    options = common.parser(__doc__, models=("mobilenet_v2", "minilm"), repeat=200)
    options.add_argument(
        "--threads",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2],
        help="numbers of threads, with commas (default: 1,2)",
    )
    given = options.parse_args()
    if find_spec("openvino") is None:  # it has an environment of its own
        if not PYTHON.exists():
            sys.exit(f"{PYTHON} is missing: `make backends` makes it")
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    report = common.Report(
        "OpenVINO through us (rl) and by itself (ov): wall and CPU ms, export in CPU s",
        [
            *("model", "threads", "rl", "ov", "ratio", "rl CPU", "ov CPU", "ratio"),
            *(f"goal {GOAL:.2f}x", "rl export", "ov export"),
        ],
    )
    for name in given.models:
        ours, theirs, exported = _prepare(name)
        for threads in given.threads:
            _measure(report, name, threads, ours(threads), theirs(threads), exported, given.repeat)
    report.finish(given.json)


Run = Callable[[], Any]
Prepared = tuple[Callable[[int], Run], Callable[[int], Run], tuple[float, float]]


def _prepare(name: str) -> Prepared:
    """Both engines, given a number of threads, and the seconds that each took to export."""
    import models
    import openvino

    import rushlight
    from rushlight.backends.openvino import OpenvinoPartitioner
    from rushlight.pipeline import to_edge_transform_and_lower

    case = models.build(name)
    captured = case.export()
    inputs = [x.numpy() for x in case.leaves()]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        lowered = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
        program = lowered.to_executorch().buffer
        between = time.process_time()
        model = openvino.convert_model(captured)
        openvino.save_model(model, Path(folder, "model.xml"), compress_to_fp16=False)
        exported = (between - began, time.process_time() - between)

    def ours(threads: int) -> Run:
        properties = {"INFERENCE_NUM_THREADS": threads}
        module = rushlight.load(program, backend_options={"OpenvinoBackend": properties})
        return lambda: module(*inputs)

    def theirs(threads: int) -> Run:
        properties = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
        }
        request = openvino.compile_model(model, "CPU", properties).create_infer_request()
        return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)

    return ours, theirs, exported


def _measure(
    report: common.Report,
    name: str,
    threads: int,
    ours: Run,
    theirs: Run,
    exported: tuple[float, float],
    repeat: int,
) -> None:
    times: dict[str, list[tuple[float, float]]] = {"delegated": [], "openvino": []}
    for _ in range(repeat + 5):
        for by, call in (("delegated", ours), ("openvino", theirs)):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            times[by].append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = (
        {by: 1e3 * common.median(t[i] for t in found[5:]) for by, found in times.items()}
        for i in (0, 1)
    )
    report.add(
        name,
        str(threads),
        *(f"{wall[by]:.2f}" for by in times),
        common.ratio(wall["delegated"], wall["openvino"]),
        *(f"{cpu[by]:.2f}" for by in times),
        common.ratio(cpu["delegated"], cpu["openvino"]),
        "met" if wall["delegated"] <= GOAL * wall["openvino"] else "missed",
        *(f"{seconds:.2f}" for seconds in exported),
        model=name,
        threads=threads,
        wall=wall,
        cpu=cpu,
        export={"delegated": exported[0], "openvino": exported[1]},
    )


if __name__ == "__main__":
    main()
