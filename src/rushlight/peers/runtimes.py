"""The script of a process that runs programs in one runtime, in that runtime's environment.

It needs only NumPy and the runtime, and imports nothing of Rushlight except `side.py` (and the
package itself, for our own programs). A process has one program open at a time.

Commands (`serve` answers requests for them): `installed`, `start`, `lower`, `open`, `outputs`,
`latency`, `peaks`. `program` is a file of ``torch.export.save``, `data` an .npz with flattened
inputs ``in0`` ...
"""

from __future__ import annotations

import contextlib
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
    """A loaded program: `call` runs it on its inputs, `arrays` takes the arrays from the result."""

    call: Callable[[], Any]
    arrays: Callable[[Any], Sequence[Any]]


class Runtime(NamedTuple):
    """The functions for one runtime.

    Attributes:
        title: its name in tables.
        package: the package that must be installed.
        suffix: the suffix of its files.
        start: imports it.
        open: loads a file for a number of threads (and options), and binds inputs.
        lower: converts an exported program (with options) and returns a function that writes the
            file; None if the runtime runs files of ``torch.export.save``.
        beside: the suffixes of further files of one program.
    """

    title: str
    package: str
    suffix: str
    start: Callable[[], object]
    open: Callable[..., Opened]
    lower: Callable[..., Writer] | None = None
    beside: tuple[str, ...] = ()

    def files(self, file: str | Path) -> list[Path]:
        """A program's files."""
        path = Path(file)
        return [p for p in (path, *(path.with_suffix(s) for s in self.beside)) if p.exists()]


# --- Rushlight ------------------------------------------------------------------------------------


def _start_rushlight() -> None:
    import rushlight.runtime.load  # noqa: F401


def _lower_rushlight(exported: Any, backend: str = "portable") -> Writer:
    from rushlight.api import export

    buffer = export(exported, backend=backend, verify=False).buffer
    return lambda path: path.write_bytes(buffer)


def _open_rushlight(file: str, threads: int, inputs: Sequence[Array], **options: Any) -> Opened:
    import numpy as np

    from rushlight.runtime.load import load

    method = load(file, threads=threads, **options)["forward"]
    args, kwargs = method.contract.in_spec.unflatten(iter(inputs))
    spec = method.contract.out_spec

    def arrays(result: Any) -> list[Array]:
        values = [x for x in spec.leaves(result) if isinstance(x, np.ndarray)]
        # Types of ml_dtypes, such as bfloat16, have NumPy's kind V.
        return [x.astype(np.float32) if x.dtype.kind == "V" else x for x in values]

    return Opened(lambda: method.call(args, kwargs), arrays)


# --- PyTorch --------------------------------------------------------------------------------------


def _start_torch() -> None:
    import torch  # noqa: F401


def arrays_of(values: Sequence[Any]) -> list[Array]:
    """The tensors among `values` as arrays; float32 for dtypes that NumPy lacks."""
    import torch

    arrays = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensor = value.detach()
            try:
                arrays.append(tensor.numpy())
            except TypeError:
                arrays.append(tensor.float().numpy())
    return arrays


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
        call()  # the first call compiles
    return Opened(call, lambda result: arrays_of(pytree.tree_leaves(result)))


def _open_compiled(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
    return _open_torch(file, threads, inputs, compiled=True)


# --- ExecuTorch -----------------------------------------------------------------------------------


def _start_executorch() -> None:
    from executorch.extension.pybindings import portable_lib  # noqa: F401
    from executorch.runtime import Runtime

    Runtime.get()


def _lower_executorch(exported: Any) -> Writer:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    buffer = edge.to_executorch().buffer
    return lambda path: path.write_bytes(buffer)


def _open_executorch(file: str, threads: int, inputs: Sequence[Array]) -> Opened:
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
        arrays_of,
    )


# --- ONNX Runtime ---------------------------------------------------------------------------------


def _start_onnxruntime() -> None:
    import onnxruntime  # noqa: F401


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


def _start_openvino() -> None:
    import openvino  # noqa: F401


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
    arrays = list(inputs)
    return Opened(
        lambda: request.infer(arrays, share_inputs=True, share_outputs=True),
        lambda result: [result[output] for output in compiled.outputs],
    )


RUNTIMES = {
    "rushlight": Runtime(
        *("Rushlight", "rushlight", ".pte"),
        start=_start_rushlight,
        lower=_lower_rushlight,
        open=_open_rushlight,
    ),
    "eager": Runtime("PyTorch eager", "torch", ".pt2", _start_torch, _open_torch),
    "compile": Runtime("torch.compile", "torch", ".pt2", _start_torch, _open_compiled),
    "executorch": Runtime(
        *("ExecuTorch", "executorch", ".pte"),
        start=_start_executorch,
        lower=_lower_executorch,
        open=_open_executorch,
    ),
    "onnxruntime": Runtime(
        *("ONNX Runtime", "onnxruntime", ".onnx"),
        start=_start_onnxruntime,
        lower=_lower_onnxruntime,
        open=_open_onnxruntime,
        beside=(".onnx.data",),
    ),
    "openvino": Runtime(
        *("OpenVINO", "openvino", ".xml"),
        start=_start_openvino,
        lower=_lower_openvino,
        open=_open_openvino,
        beside=(".bin",),
    ),
}
"""The runtimes by their names in options."""


# --- commands -------------------------------------------------------------------------------------

_open: Opened | None = None


def _current() -> Opened:
    if _open is None:
        raise RuntimeError("no program is open")
    return _open


def installed() -> dict[str, str]:
    """The runtimes whose packages are installed here, with their versions; imports none."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name, runtime in RUNTIMES.items():
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(runtime.package).partition("+")[0]
    return versions


def start(runtime: str) -> None:
    """Import a runtime."""
    RUNTIMES[runtime].start()


def lower(runtime: str, program: str, file: str, **options: Any) -> dict[str, float]:
    """Make the runtime's file; returns CPU and wall seconds without reading and writing."""
    import torch

    exported = torch.export.load(program)
    make = RUNTIMES[runtime].lower
    if make is None:
        raise ValueError(f"{runtime} runs what torch.export.save wrote")
    writer, seconds = side.measure_once(lambda: make(exported, **options))
    writer(Path(file))
    return dict(seconds)


def open_program(
    runtime: str, file: str, data: str, threads: int, cold: bool = False, **options: Any
) -> dict[str, float]:
    """Load a program instead of the one that was open, and call it once.

    Args:
        runtime: the runtime's name.
        file: the runtime's file.
        data: an .npz with the inputs.
        threads: the number of threads.
        cold: remove the file from the page cache first.
        options: options of `rushlight.load`, for our own programs.

    Returns:
        Time and memory (see `side.measure_load`); memory is valid only in a fresh process.
    """
    global _open
    _open = None
    chosen = RUNTIMES[runtime]
    chosen.start()
    inputs = side.read_inputs(data)
    if cold:
        side.drop_pages(chosen.files(file))

    def load() -> Callable[[], Any]:
        global _open
        _open = chosen.open(file, threads, inputs, **options)
        return _open.call

    return dict(side.measure_load(load))


def outputs(path: str) -> None:
    """Run the open program and write its outputs ``out0`` ..."""
    import numpy as np

    results = _current().arrays(_current().call())
    arrays: dict[str, Any] = {f"out{i}": np.asarray(x) for i, x in enumerate(results)}
    np.savez(path, **arrays)


def latency(calls: int = 1, warmup: int = 0) -> list[float]:
    """Seconds of each call of the open program."""
    return list(side.measure_calls(_current().call, calls, warmup))


def peaks(threads: int) -> dict[str, float]:
    """The machine's peaks, measured by our runtime: see `rushlight.runtime.peaks`."""
    from rushlight.runtime.peaks import measure_peaks

    return measure_peaks(threads)._asdict()


COMMANDS: dict[str, Callable[..., Any]] = {
    "installed": installed,
    "start": start,
    "lower": lower,
    "open": open_program,
    "outputs": outputs,
    "latency": latency,
    "peaks": peaks,
}

if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    side.main(COMMANDS, __doc__)
