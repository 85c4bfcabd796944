"""The cpu backend: whole models in integers, by our quantizer and by ExecuTorch's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from cpu_integers import Reference
from cpu_quantized_models import CpuPartitioner, left_of, names_of, near, nodes_in, residuals_of
from torch.export import ExportedProgram
from xnnpack_quantized import Quantizer

import rushlight as rl
from delegates import flat, lowered_modules
from rushlight.quantization import quantize
from rushlight.schema import cpu_engine as fb

if TYPE_CHECKING:
    from conftest import ExecuTorch

INTEGER = {
    *("Convert", "Copy", "Lookup", "QuantizedBinary", "QuantizedPooling"),
    *("QuantizedConvolution", "QuantizedProduct"),
}


def lowered(program: ExportedProgram) -> rl.EdgeProgramManager:
    return rl.to_edge_transform_and_lower(program, partitioner=[CpuPartitioner()])


def noise_in(
    program: ExportedProgram, edge: rl.EdgeProgramManager, args: Any, kwargs: Any
) -> float:
    """Signal to noise of the engine's results beside eager's of the quantised graph, in dB."""
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True)
    with torch.no_grad():
        [ours], [eager] = flat(module(*args, **kwargs)), flat(program.module()(*args, **kwargs))
    error = (ours - eager).double().square().sum().clamp(min=1e-30)
    return float(10 * torch.log10(eager.double().square().sum() / error))


def held_to_reference(edge: rl.EdgeProgramManager, image: torch.Tensor) -> None:
    """The engine's integers equal those of plain sums, node by node through the whole model."""
    [part] = lowered_modules(edge.exported_program())
    module = rl.load(bytes(edge.to_executorch().buffer), check_backends=True)
    [ours], [exact] = flat(module(image)), Reference(part)(image)
    near(ours, exact.reshape(ours.shape), 1e-6 * float(exact.abs().max()), "the engine's result")


def is_integer(edge: rl.EdgeProgramManager) -> Counter[str]:
    """Check that a program computes integers from its first node to its last; counts the nodes."""
    assert not left_of(edge)
    names = names_of(nodes_in(edge))
    assert set(names) <= INTEGER
    assert names[0] == names[-1] == "Convert" and names.count("Convert") == 2
    return Counter(names)


@pytest.mark.parametrize("name", ["mobilenet_v2_tiny", "resnet50_tiny"])
def test_our_quantizer(models: ModuleType, name: str) -> None:
    case = models.build(name)
    images = tuple(case.leaves())
    program = quantize(case.module, images, calibrate=[images], recipe="int8")
    edge = lowered(program)
    is_integer(edge)
    assert residuals_of(nodes_in(edge))
    held_to_reference(edge, *images)
    assert noise_in(program, edge, images, {}) > 25


@pytest.mark.interop
@pytest.mark.parametrize(
    ("name", "least"),
    [pytest.param("mobilenet_v2_tiny", 10, marks=pytest.mark.full), ("resnet50_tiny", 25)],
)
def test_quantizer_of_executorch(
    executorch: ExecuTorch, tmp_path: Path, models: ModuleType, name: str, least: float
) -> None:
    """ExecuTorch's quantizer leaves biases in float32, and gives each activation and each pad its
    own scale. (The small models with random weights amplify small differences: noise of 1e-4 on the
    image changes eager's results for the first model as much.)"""
    case = models.build(name)
    images = tuple(case.leaves())
    program = Quantizer(executorch, tmp_path).quantized_program(case.export(), images)
    edge = lowered(program)
    is_integer(edge)
    assert residuals_of(nodes_in(edge))
    held_to_reference(edge, *images)
    assert noise_in(program, edge, images, {}) > least


def stored(edge: rl.EdgeProgramManager) -> int:
    """Bytes of the weights of rows that are quantised at run time."""
    size = 0
    for part in lowered_modules(edge.exported_program()):
        graph = fb.unpack(part.processed_bytes)
        for node in graph.nodes:
            if isinstance(node.operation, fb.DynamicProduct):
                size += graph.constants[graph.values[node.inputs[2]].index].size
    return size


@pytest.mark.parametrize(("recipe", "bits"), [("int8-dynamic", 8), ("int4-dynamic", 4)])
def test_text_by_rows(models: ModuleType, recipe: str, bits: int) -> None:
    """Queries, keys and values are one product, and weights take no extra bytes."""
    case = models.build("minilm_tiny")
    program = quantize(case.module, case.args, case.kwargs, recipe=recipe)
    edge = lowered(program)
    assert not any("quantize" in name for name in left_of(edge))
    names = names_of(nodes_in(edge))
    assert names.count("DynamicProduct") == 8 and names.count("QuantizeRows") == 8
    assert noise_in(program, edge, case.args, case.kwargs) > 20
    layers = [m for m in case.module.modules() if isinstance(m, torch.nn.Linear)]
    used = [layer.weight for layer in layers if len(layers) == 12 or layer is not layers[-1]]
    assert stored(edge) == sum(weight.numel() for weight in used) * bits // 8


@pytest.mark.parametrize("recipe", ["int8", "int8-per-tensor"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"stride": 2, "output_padding": 1}, {"groups": 2}, {"bias": False}],
    ids=["plain", "stride", "groups", "no-bias"],
)
@pytest.mark.parametrize("lines", [True, False], ids=["lines", "images"])
def test_transposed_convolutions_of_other_channels(
    recipe: str, settings: dict[str, Any], lines: bool
) -> None:
    """Their weights have the output channels second; with a single scale nothing else shows it."""
    torch.manual_seed(0)
    kind: Any = torch.nn.ConvTranspose1d if lines else torch.nn.ConvTranspose2d
    model = torch.nn.Sequential(kind(4, 8, 3, **settings), torch.nn.ReLU(), kind(8, 6, 3)).eval()
    x = torch.randn(2, 4, *(7,) * (1 if lines else 2))
    program = rl.quantize(model, calibrate=[(x,)], recipe=recipe)
    actual = torch.as_tensor(rl.load(rl.export(program, backend="cpu").buffer)(x))
    expected = program.module()(x)
    assert (actual - expected).abs().max() <= 0.01 * expected.abs().max()
