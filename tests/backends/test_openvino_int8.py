"""Quantised graphs: OpenVINO takes them whole, and its integers are off by one at most."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import nn

import rushlight
from rushlight.backends.openvino import OpenvinoPartitioner
from rushlight.partition import CompileSpec
from rushlight.pipeline import EdgeProgramManager, to_edge_transform_and_lower

quantized = torch.ops.quantized_decomposed


class Through(nn.Module):
    """Quantises and dequantises, as a converted model does around each operator."""

    def __init__(self, scale: float, zero: int, dtype: torch.dtype) -> None:
        super().__init__()
        limits = torch.iinfo(dtype)
        self.parameters_ = (scale, zero, limits.min, limits.max, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        integers = quantized.quantize_per_tensor(x, *self.parameters_)
        return quantized.dequantize_per_tensor(integers, *self.parameters_)


class QuantizedWeight(nn.Module):
    """A layer whose weight is stored as int8, with a scale for each channel."""

    def __init__(self, layer: nn.Conv2d | nn.Linear) -> None:
        super().__init__()
        weight = layer.weight.detach()
        scale = weight.abs().flatten(1).amax(1) / 127
        scaled = weight / scale.reshape(-1, *[1] * (weight.dim() - 1))
        self.register_buffer("weight", scaled.round().clamp(-127, 127).to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("zero", torch.zeros(len(scale), dtype=torch.int64))
        self.register_buffer("bias", layer.bias.detach())
        self.is_convolution = isinstance(layer, nn.Conv2d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = quantized.dequantize_per_channel(
            self.weight, self.scale, self.zero, 0, -127, 127, torch.int8
        )
        if self.is_convolution:
            return torch.relu(nn.functional.conv2d(x, weight, self.bias, padding=1))
        return nn.functional.linear(x, weight, self.bias)


def network(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    low = torch.iinfo(dtype).min
    return nn.Sequential(
        Through(0.03, low + 128, dtype),
        QuantizedWeight(nn.Conv2d(16, 32, 3)),
        Through(0.02, low, dtype),
        QuantizedWeight(nn.Conv2d(32, 32, 3)),
        Through(0.02, low, dtype),
        nn.Flatten(2),
        QuantizedWeight(nn.Linear(256, 10)),
        Through(0.01, low + 128, dtype),
    ).eval()


def lowered(dtype: torch.dtype) -> tuple[nn.Module, torch.Tensor, EdgeProgramManager]:
    model, x = network(dtype), torch.randn(1, 16, 16, 16)
    captured = torch.export.export(model, (x,))
    return model, x, to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_results_stay_within_one_scale(dtype: torch.dtype) -> None:
    model, x, manager = lowered(dtype)
    calls = [n for n in manager.exported_program().graph.nodes if n.op == "call_function"]
    assert len(calls) == 2, "the graph is not one delegate and the choice of its result"
    with rushlight.load(manager.to_executorch().buffer) as module:
        got = module(x)
    expected = model(x)
    errors = (got - expected).abs() / 0.01
    assert errors.max() <= 1 + 1e-3 and (errors > 0.5).float().mean() < 0.02
    assert expected.abs().max() > 0.3


def test_kernels_are_integer_kernels() -> None:
    import openvino

    from rushlight.backends.openvino.payload import read_payload
    from rushlight.backends.openvino.properties import exact_properties

    _, x, manager = lowered(torch.int8)
    payload = manager.exported_program().graph_module.lowered_module_0.processed_bytes
    parts = read_payload(memoryview(payload))
    assert parts is not None
    core = openvino.Core()
    model = core.read_model(bytes(parts.xml), bytes(parts.weights))
    # As at load. With half precision, the default where a processor computes in it, OpenVINO
    # refuses the model.
    config = {**exact_properties(core, "CPU"), "PERF_COUNT": True}
    request = core.compile_model(model, "CPU", config).create_infer_request()
    request.infer([x.numpy()])
    kernels = {
        info.node_name.split("/")[0]: info.exec_type
        for info in request.get_profiling_info()
        if info.node_type in ("Convolution", "FullyConnected", "MatMul")
    }
    assert len(kernels) == 3
    assert all(kernel.lower().endswith("i8") for kernel in kernels.values()), kernels


def test_weights_are_stored_as_integers() -> None:
    _, _, manager = lowered(torch.int8)
    weights = sum(b.numel() for n, b in network(torch.int8).named_buffers() if "weight" in n)
    assert len(manager.to_executorch().buffer) < 1.2 * weights + 60_000


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [(torch.int16, "OpenVINO has no kernels for tensors quantised to int16")],
)
def test_other_integers_are_declined(dtype: torch.dtype, reason: str) -> None:
    model, x = Through(0.03, 0, dtype), torch.randn(4)
    captured = torch.export.export(model, (x,))
    manager = to_edge_transform_and_lower(captured, partitioner=[OpenvinoPartitioner()])
    kernels = {
        n.meta["declined"]["OpenvinoBackend"]
        for n in manager.exported_program().graph.nodes
        if "declined" in n.meta
    }
    assert kernels == {reason}


@pytest.mark.parametrize("payload", ["ir", "blob"])
@pytest.mark.parametrize("recipe", ["int8-weights", "int4-weights"])
def test_recipes_for_weights_leave_activations_alone(recipe: str, payload: str) -> None:
    """Left to itself, OpenVINO quantises the inputs of such layers, which verification refuses."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64)).eval()
    x = torch.randn(4, 256)
    backend = OpenvinoPartitioner([CompileSpec("payload", payload.encode())])
    program = rushlight.export(model, (x,), quantize=recipe, backend=backend)
    wanted = rushlight.quantize(model, (x,), recipe=recipe).module()(x)
    torch.testing.assert_close(rushlight.load(program.buffer)(x), wanted, rtol=1e-4, atol=1e-4)
    if payload == "ir" and recipe == "int8-weights":  # asked for, they are quantised
        options = {"OpenvinoBackend": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 64}}
        rough = rushlight.load(program.buffer, backend_options=options)(x)
        assert (rough - wanted).abs().max() > 1e-3
