"""Programs timed in one of several runtimes: the script of a process in that runtime's environment.

It runs where NumPy and the runtime are, and imports nothing of Rushlight but `side.py` beside it
(and the package itself, for our own programs). A process has one program open at a time.

Commands (`serve` answers requests for them): `start`, `lower`, `open`, `close`, `outputs`,
`latency`, `load`, `peaks`. `program` is a file of ``torch.export.save``, `data` an .npz with
flattened inputs ``in0`` ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    import side  # type: ignore[import-not-found]
else:
    from rushlight.peers import side

Array = Any  # NumPy's, which is imported when it is needed
Writer = Callable[[Path], Any]


class Opened(NamedTuple):
    """A loaded program: one call on its inputs, and the arrays that such a call returned."""

    call: Callable[[], Any]
    arrays: Callable[[Any], Sequence[Any]]


class Runtime(NamedTuple):
    """How to use a runtime.

    Attributes:
        title: its name for people.
        suffix: of its files.
        start: imports it; its version.
        lower: from an exported program (and options) to what writes the runtime's file.
        open: loads such a file for a number of threads, and binds inputs.
        beside: what takes the suffix's place in further files that belong to one.
    """

    title: str
    suffix: str
    start: Callable[[], str]
    lower: Callable[..., Writer]
    open: Callable[[str, int, Sequence[Array]], Opened]
    beside: tuple[str, ...] = ()

    def files(self, file: str | Path) -> list[Path]:
        """A program's files."""
        path = Path(file)
        return [p for p in (path, *(path.with_suffix(s) for s in self.beside)) if p.exists()]


# --- Rushlight ------------------------------------------------------------------------------------


def _start_rushlight() -> str:
    from importlib.metadata import PackageNotFoundError, version

    import rushlight.runtime.load  # noqa: F401

    try:
        return version("rushlight")
    except PackageNotFoundError:
        return "from its sources"


def _lower_rushlight(exported: Any, backend: str = "portable") -> Writer:
    from rushlight.api import export

    buffer = export(exported, backend=backend, verify=False).buffer
    return lambda path: path.write_bytes(buffer)


def _open_rushlight(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    from rushlight.runtime.load import load as load_program

    method = load_program(file, threads=threads)["forward"]
    args, kwargs = method.contract.in_spec.unflatten(iter(inputs))
    leaves = method.contract.out_spec.leaves
    return Opened(lambda: method.call(args, kwargs), leaves)


# --- PyTorch --------------------------------------------------------------------------------------


def _start_torch() -> str:
    import torch

    return str(torch.__version__)


def _save_exported(exported: Any) -> Writer:
    import torch

    return lambda path: torch.export.save(exported, path)


def _open_torch(file: str, threads: int, inputs: Sequence[Array], compiled: bool = False) -> Opened:
    import torch
    from torch.utils import _pytree as pytree

    torch.set_num_threads(threads)
    exported = torch.export.load(file)
    module: Any = exported.module()
    if compiled:
        module = torch.compile(module)
    tensors = [torch.from_numpy(array) for array in inputs]
    spec = exported.call_spec.in_spec
    assert spec is not None
    args, kwargs = pytree.tree_unflatten(tensors, spec)

    def call() -> Any:
        with torch.inference_mode():
            return module(*args, **kwargs)

    if compiled:
        call()  # which compiles
    return Opened(call, lambda result: [x.numpy() for x in pytree.tree_leaves(result)])


def _open_compiled(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    return _open_torch(file, threads, inputs, compiled=True)


# --- ExecuTorch -----------------------------------------------------------------------------------


def _start_executorch() -> str:
    from importlib.metadata import version

    from executorch.extension.pybindings import portable_lib  # noqa: F401
    from executorch.runtime import Runtime

    Runtime.get()
    return version("executorch")


def _lower_executorch(exported: Any) -> Writer:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    buffer = edge.to_executorch().buffer
    return lambda path: path.write_bytes(buffer)


def _open_executorch(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    import numpy as np
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    portable_lib._unsafe_reset_threadpool(threads)
    program = Runtime.get().load_program(Path(file))
    method = program.load_method("forward")
    tensors = [torch.from_numpy(array) for array in inputs]
    # A method does not keep its program alive.
    return Opened(
        lambda kept=program: method.execute(tensors),  # type: ignore[misc]
        lambda result: [np.asarray(x) for x in result],
    )


# --- ONNX Runtime ---------------------------------------------------------------------------------


def _start_onnxruntime() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


def _lower_onnxruntime(exported: Any) -> Writer:
    import torch

    program = torch.onnx.export(exported, dynamo=True, verbose=False)
    assert program is not None
    return lambda path: program.save(str(path), external_data=True)


def _open_onnxruntime(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    feeds = dict(zip(names, inputs, strict=True))
    return Opened(lambda: session.run(None, feeds), lambda result: result)


# --- OpenVINO -------------------------------------------------------------------------------------


def _start_openvino() -> str:
    import openvino

    return str(openvino.__version__).partition("-")[0]


def _lower_openvino(exported: Any) -> Writer:
    import openvino

    model = openvino.convert_model(exported)
    return lambda path: openvino.save_model(model, path, compress_to_fp16=False)


def _open_openvino(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    import openvino

    properties = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
    }
    compiled = openvino.Core().compile_model(file, "CPU", properties)
    request = compiled.create_infer_request()
    given = list(inputs)
    return Opened(
        lambda: request.infer(given, share_inputs=True, share_outputs=True),
        lambda result: [result[output] for output in compiled.outputs],
    )


RUNTIMES = {
    "rushlight": Runtime("Rushlight", ".pte", _start_rushlight, _lower_rushlight, _open_rushlight),
    "eager": Runtime("PyTorch eager", ".pt2", _start_torch, _save_exported, _open_torch),
    "compile": Runtime("torch.compile", ".pt2", _start_torch, _save_exported, _open_compiled),
    "executorch": Runtime(
        "ExecuTorch", ".pte", _start_executorch, _lower_executorch, _open_executorch
    ),
    "onnxruntime": Runtime(
        *("ONNX Runtime", ".onnx", _start_onnxruntime, _lower_onnxruntime, _open_onnxruntime),
        beside=(".onnx.data",),
    ),
    "openvino": Runtime(
        *("OpenVINO", ".xml", _start_openvino, _lower_openvino, _open_openvino), beside=(".bin",)
    ),
}
"""By the name that options take."""


# --- commands -------------------------------------------------------------------------------------

_open: Opened | None = None


def _current() -> Opened:
    if _open is None:
        raise RuntimeError("no program is open")
    return _open


def start(runtime: str) -> str:
    """Import a runtime; its version."""
    return RUNTIMES[runtime].start()


def lower(runtime: str, program: str, file: str, **options: Any) -> dict[str, float]:
    """Make the runtime's file; CPU and wall seconds that this takes without reading and writing."""
    import torch

    exported = torch.export.load(program)
    writer, seconds = side.measure_once(lambda: RUNTIMES[runtime].lower(exported, **options))
    writer(Path(file))
    return dict(seconds)


def open_program(runtime: str, file: str, data: str, threads: int) -> None:
    """Load a program, in place of the one that was open."""
    close()
    global _open
    _open = RUNTIMES[runtime].open(file, threads, side.read_inputs(data))


def close() -> None:
    """Let go of the open program."""
    global _open
    _open = None


def outputs(path: str) -> None:
    """Run the open program and write its outputs ``out0`` ..."""
    import numpy as np

    found = _current().arrays(_current().call())
    arrays: dict[str, Any] = {f"out{i}": np.asarray(x) for i, x in enumerate(found)}
    np.savez(path, **arrays)


def latency(calls: int = 1, warmup: int = 0) -> list[float]:
    """Seconds of each call of the open program."""
    return list(side.measure_calls(_current().call, calls, warmup))


def load(runtime: str, file: str, data: str, threads: int, cold: bool) -> dict[str, float]:
    """Time and memory of loading (see `side.measure_load`), for a fresh process; `cold`: none of
    the program is in the page cache."""
    found = RUNTIMES[runtime]
    found.start()
    inputs = side.read_inputs(data)
    if cold:
        side.drop_pages(found.files(file))
    return dict(side.measure_load(lambda: found.open(file, threads, inputs).call))


def peaks(threads: int) -> dict[str, float]:
    """What the machine reaches, measured by our runtime: see `rushlight.runtime.peaks`."""
    from rushlight.runtime.peaks import measure_peaks

    return measure_peaks(threads)._asdict()


COMMANDS: dict[str, Callable[..., Any]] = {
    "start": start,
    "lower": lower,
    "open": open_program,
    "close": close,
    "outputs": outputs,
    "latency": latency,
    "load": load,
    "peaks": peaks,
}

if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    side.main(COMMANDS, __doc__)
