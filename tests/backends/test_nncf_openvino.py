"""OpenVINOQuantizer: NNCF's choices as annotations, in programs that OpenVINO runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import rushlight
from delegates import lowered_modules
from rushlight.backends.openvino import OpenvinoPartitioner
from rushlight.backends.openvino.quantizer import (
    OpenVINOQuantizer,
    QuantizationMode,
    quantize_model,
)
from rushlight.pipeline import to_edge_transform_and_lower

IMAGE = (torch.randn(2, 3, 16, 16),)
INT8 = [m for m in QuantizationMode if "wo_" not in m.value]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 8, 1)
        self.linear = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([torch.relu(self.first(x)), self.second(x)], 1)
        return self.linear(joined.mean((2, 3)))


def captured() -> GraphModule:
    torch.manual_seed(0)
    return torch.export.export(Small().eval(), IMAGE).module()


def wanted() -> torch.Tensor:
    torch.manual_seed(0)
    return Small().eval()(*IMAGE)


def check(made: GraphModule) -> None:
    """The quantised model is near the float one, and OpenVINO runs it as torch does."""
    eager = made(*IMAGE)
    assert (eager - wanted()).abs().max() < 0.1 * wanted().abs().max()
    edge = to_edge_transform_and_lower(
        torch.export.export(made, IMAGE), partitioner=[OpenvinoPartitioner()]
    )
    assert len(lowered_modules(edge.exported_program())) == 1
    with rushlight.load(edge.to_executorch().buffer) as module:
        assert (module(*IMAGE) - eager).abs().max() < 0.05 * wanted().abs().max()


def quantised(quantizer: OpenVINOQuantizer) -> GraphModule:
    prepared = prepare_pt2e(captured(), quantizer)
    for _ in range(4):
        prepared(torch.randn(2, 3, 16, 16))
    return convert_pt2e(prepared)


def weights(made: GraphModule) -> int:
    """The number of weights that are stored as integers."""
    target = torch.ops.quantized_decomposed.dequantize_per_channel.default
    return sum(node.target == target for node in made.graph.nodes)


@pytest.mark.parametrize("mode", INT8)
def test_its_annotations(mode: QuantizationMode) -> None:
    made = quantised(OpenVINOQuantizer(mode=mode))
    assert weights(made) == 3
    check(made)


def test_nncf_corrects_biases_too() -> None:
    samples = [torch.randn(2, 3, 16, 16) for _ in range(4)]
    made = quantize_model(captured(), samples, subset_size=4, extra_quantizer_options={"mode": 1})
    check(made)


def test_parts_are_left_out() -> None:
    quantizer = OpenVINOQuantizer()
    quantizer.set_ignored_scope(names=["linear"])
    assert weights(quantised(quantizer)) == 2


def test_modes_for_weights_alone_say_what_to_use() -> None:
    with pytest.raises(ValueError, match="int4-weights"):
        OpenVINOQuantizer(mode=QuantizationMode.INT4WO_SYM)
