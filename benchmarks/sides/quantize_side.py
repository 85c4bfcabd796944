"""Models quantised by the tools of other runtimes: the script of a process in their environment.

It imports nothing of Rushlight but `side.py`. `program` is a file of ``torch.export.save``,
`calibration` an .npz with inputs ``in0``, ``in1`` ... of several calls one after the other.

Commands: `executorch` (its XNNPACKQuantizer), `executorch_as_is` (a program that is quantised
already), `onnxruntime` (its QDQ and dynamic tools, of an ONNX file), `openvino` (such a file);
`executorch_outputs` and `onnxruntime_outputs` quantise as well, and run images one by one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "rushlight" / "peers"))

import side


def _calls(calibration: str, inputs: int) -> Iterator[list[Any]]:
    arrays = side.read_inputs(calibration)
    for at in range(0, len(arrays), inputs):
        yield arrays[at : at + inputs]


# --- ExecuTorch -----------------------------------------------------------------------------------


def executorch(program: str, calibration: str, file: str) -> None:
    """Static; weights with a scale for each channel."""
    import torch

    quantised, example = _with_xnnpack_quantizer(torch.export.load(program), calibration)
    _lower_executorch(torch.export.export(quantised, *example), file, dynamic=False)


def _with_xnnpack_quantizer(exported: Any, calibration: str) -> tuple[Any, Any]:
    """The converted module, and the last inputs that it was calibrated with."""
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torch.utils import _pytree as pytree
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(True))
    prepared = prepare_pt2e(exported.module(), quantizer)
    spec = exported.call_spec.in_spec
    example: Any = None
    with torch.no_grad():
        for arrays in _calls(calibration, spec.num_leaves):
            tensors = [torch.from_numpy(array) for array in arrays]
            example = pytree.tree_unflatten(tensors, spec)
            prepared(*example[0], **example[1])
        _search_once(prepared)
    return convert_pt2e(prepared), example


def _search_once(prepared: Any) -> None:
    """Let observers search for their ranges once: `convert_pt2e` asks several times, each time for
    the same, and a search takes seconds."""
    from torchao.quantization.pt2e import HistogramObserver

    for module in prepared.modules():
        if isinstance(module, HistogramObserver) and module.histogram.any():
            ends = module._non_linear_param_search()
            module._non_linear_param_search = lambda ends=ends: ends


def executorch_as_is(program: str, file: str) -> None:
    """With the rows quantised that the program quantises."""
    import torch
    import torchao.quantization.pt2e  # noqa: F401 - knows the operators

    _lower_executorch(torch.export.load(program), file, dynamic=True)


def _lower_executorch(exported: Any, file: str, dynamic: bool) -> None:
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    partitioners = [XnnpackPartitioner()]
    if dynamic:  # as its documentation has it: operator by operator, before all others
        first = XnnpackPartitioner(
            config_precisions=ConfigPrecisionType.DYNAMIC_QUANT, per_op_mode=True
        )
        partitioners.insert(0, first)
    edge = to_edge_transform_and_lower(exported, partitioner=partitioners)
    Path(file).write_bytes(edge.to_executorch().buffer)


def executorch_outputs(program: str, calibration: str, tests: str, outputs: str) -> None:
    """Run the tests by the graph that XNNPACKQuantizer makes, and write ``out0`` ..."""
    import numpy as np
    import torch

    exported = torch.export.load(program)
    quantised = _with_xnnpack_quantizer(exported, calibration)[0]
    with torch.no_grad():
        results = [quantised(*map(torch.from_numpy, call)) for call in _calls(tests, 1)]
    np.savez(outputs, **{f"out{i}": value.numpy() for i, value in enumerate(results)})


# --- ONNX Runtime, and OpenVINO by way of it ------------------------------------------------------


class _Reader:
    """Calibration data as ONNX Runtime asks for it."""

    def __init__(self, names: Sequence[str], calibration: str) -> None:
        self._calls = _calls(calibration, len(names))
        self._names = names

    def get_next(self) -> dict[str, Any] | None:
        arrays = next(self._calls, None)
        return None if arrays is None else dict(zip(self._names, arrays, strict=True))


def onnxruntime(onnx: str, calibration: str, file: str, recipe: str) -> None:
    """QDQ with unsigned activations, which it runs fastest on x86; dynamic; or 4 bits in groups."""
    import onnx as library
    from onnxruntime.quantization import (
        QuantFormat,
        QuantType,
        quant_pre_process,
        quantize_static,
    )

    with tempfile.TemporaryDirectory() as folder:
        whole, ready = str(Path(folder) / "whole.onnx"), str(Path(folder) / "ready.onnx")
        library.save(library.load(onnx), whole)  # its tools lose files beside a model
        quant_pre_process(whole, ready, skip_symbolic_shape=True)
        if recipe == "int8":
            names = [value.name for value in library.load(ready).graph.input]
            quantize_static(
                ready, file, _Reader(names, calibration), quant_format=QuantFormat.QDQ,
                per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
        elif recipe == "int8-dynamic":
            _dynamic(ready, file)
        else:
            _four_bits(ready, file)


def onnxruntime_outputs(
    onnx: str, calibration: str, tests: str, outputs: str, per_channel: bool
) -> None:
    """Run the tests by the model that ONNX Runtime's static quantizer makes; write ``out0`` ..."""
    import numpy as np
    import onnx as library
    import onnxruntime as runtime
    from onnxruntime.quantization import quant_pre_process, quantize_static

    with tempfile.TemporaryDirectory() as folder:
        whole, ready, file = (str(Path(folder) / name) for name in ("whole", "ready", "file"))
        library.save(library.load(onnx), whole)
        quant_pre_process(whole, ready, skip_symbolic_shape=True)
        names = [value.name for value in library.load(ready).graph.input]
        quantize_static(ready, file, _Reader(names, calibration), per_channel=per_channel)
        options = runtime.SessionOptions()
        # What further levels fuse computes zeros of EfficientNet-B0; the quantizer is compared.
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        results = [session.run(None, {names[0]: call[0]})[0] for call in _calls(tests, 1)]
    np.savez(outputs, **{f"out{i}": value for i, value in enumerate(results)})


def onnxruntime_dynamic(onnx: str, file: str) -> None:
    """The dynamic tool alone, which leaves weights in float that are no constants of the file."""
    import onnx as library

    with tempfile.TemporaryDirectory() as folder:
        whole = str(Path(folder) / "whole.onnx")
        library.save(library.load(onnx), whole)
        _dynamic(whole, file)


def _dynamic(onnx: str, file: str) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        onnx, file, per_channel=True, weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gemm"],
    )  # fmt: skip


def _four_bits(onnx: str, file: str) -> None:
    import onnx as library
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    # Level 4: activations are int8 in the products, as in the recipe that it is compared with.
    quantizer = MatMulNBitsQuantizer(
        library.load(onnx), block_size=32, is_symmetric=True, accuracy_level=4
    )
    quantizer.process()
    quantizer.model.save_model_to_file(file)


def openvino(onnx: str, file: str) -> None:
    """The file of a quantised ONNX model."""
    import openvino as library

    library.save_model(library.convert_model(onnx), file, compress_to_fp16=False)


COMMANDS: dict[str, side.Command] = {
    "executorch": executorch,
    "executorch_as_is": executorch_as_is,
    "executorch_outputs": executorch_outputs,
    "onnxruntime": onnxruntime,
    "onnxruntime_dynamic": onnxruntime_dynamic,
    "onnxruntime_outputs": onnxruntime_outputs,
    "openvino": openvino,
}

if __name__ == "__main__":
    side.main(COMMANDS, __doc__)
