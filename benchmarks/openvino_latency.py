"""Models delegated to OpenVINO by us, beside OpenVINO itself on the same captured model.

OpenVINO's own side is `openvino.convert_model(exported_program)`, compiled with the same properties
and run with shared memory. Both are in one process and take turns call by call; medians of wall and
of CPU time, which other work on the machine disturbs less. Export is timed in CPU seconds, from the
captured model to a file, beside OpenVINO's conversion to one.

Models with `_int8` are quantised by PT2E, with torchao from the environment that `make peer` makes.
OpenVINO's own reader does not know the operators of such a graph as integer kernels; its side is
the representation that the delegate stores, compiled by OpenVINO. Both must run integer kernels.

  python benchmarks/openvino_latency.py --models minilm --threads 1
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from typing import Any

import common
from common import ROOT

GOAL = 1.05
MODELS = ("mobilenet_v2", "minilm", "bert_base", "mobilenet_v2_int8")
INT8 = "_int8"
PT2E_SIDE = Path(__file__).resolve().parent / "sides" / "pt2e_side.py"
PYTHON = ROOT / ".venv-backends" / "bin" / "python"


def main() -> None:
    options = common.parser(__doc__, models=MODELS, repeat=200)
    options.add_argument(
        "--threads",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[1, 2],
        help="numbers of threads, with commas (default: 1,2)",
    )
    arguments = options.parse_args()
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
    for name in arguments.models:
        ours, theirs, exported = _prepare(name, arguments.executorch)
        for threads in arguments.threads:
            _measure(
                report, name, threads, ours(threads), theirs(threads), exported, arguments.repeat
            )
    report.finish(arguments.json)


Run = Callable[[], Any]
Prepared = tuple[Callable[[int], Run], Callable[[int], Run], tuple[float, float]]


def _prepare(name: str, peer: str) -> Prepared:
    """Both engines, given a number of threads, and the seconds that each took to export."""
    import models
    import openvino

    import rushlight
    from rushlight.backends.openvino import OpenvinoPartitioner
    from rushlight.pipeline import to_edge_transform_and_lower

    case = models.build(name.removesuffix(INT8))
    captured = case.export()
    if name.endswith(INT8):
        captured = _quantized(captured, case.args, peer)
    inputs = [x.numpy() for x in case.leaves()]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        lowered = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
        program = lowered.to_executorch().buffer
        between = time.process_time()
        model = _stored(lowered) if name.endswith(INT8) else openvino.convert_model(captured)
        openvino.save_model(model, Path(folder, "model.xml"), compress_to_fp16=False)
        took = math.nan if name.endswith(INT8) else time.process_time() - between
        exported = (between - began, took)  # OpenVINO's side was read from ours

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


def _quantized(captured: Any, args: tuple[Any, ...], peer: str) -> Any:
    """The model in int8, calibrated on random inputs."""
    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators of such graphs

    if not Path(peer).exists():
        sys.exit(f"{peer} is missing: `make peer` makes it, --executorch names another")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("captured.pt2", "calibration.pt", "out.pt2")]
        torch.export.save(captured, files[0])
        torch.save([tuple(torch.randn_like(x) for x in args) for _ in range(4)], files[1])
        subprocess.run([peer, str(PT2E_SIDE), *map(str, files)], check=True, stderr=PIPE)
        return torch.export.load(files[2])


def _stored(lowered: Any) -> Any:
    """The model that the only delegate stores, in which integer kernels must be."""
    import openvino

    from rushlight.backends.openvino.payload import read_payload
    from rushlight.partition import LoweredBackendModule

    children = lowered.exported_program().graph_module.children()
    (delegate,) = (m for m in children if isinstance(m, LoweredBackendModule))
    payload = read_payload(memoryview(delegate.processed_bytes))
    assert payload is not None
    model = openvino.Core().read_model(bytes(payload.xml), bytes(payload.weights))
    compiled = openvino.compile_model(model, "CPU")
    kernels = [node.get_rt_info()["primitiveType"].astype(str) for node in _layers(compiled)]
    if not kernels or not all(kernel.lower().endswith("i8") for kernel in kernels):
        sys.exit(f"OpenVINO runs other kernels than for integers: {sorted(set(kernels))}")
    return model


def _layers(compiled: Any) -> list[Any]:
    """The nodes that multiply by weights."""
    nodes = compiled.get_runtime_model().get_ordered_ops()
    kinds = ("Convolution", "GroupConvolution", "FullyConnected", "MatMul")
    return [n for n in nodes if n.get_rt_info()["layerType"].astype(str).startswith(kinds)]


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
        {by: 1e3 * common.median(t[i] for t in turns[5:]) for by, turns in times.items()}
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
        *("-" if math.isnan(seconds) else f"{seconds:.2f}" for seconds in exported),
        model=name,
        threads=threads,
        wall=wall,
        cpu=cpu,
        export={"delegated": exported[0], "openvino": exported[1] if exported[1] > 0 else None},
    )


if __name__ == "__main__":
    main()
