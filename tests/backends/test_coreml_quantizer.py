"""Core ML: captured graphs that are quantised by coremltools' configurations."""

from __future__ import annotations

import logging

import pytest
import torch
from coremltools import target
from coremltools.optimize.torch.quantization import (
    LinearQuantizerConfig,
    ModuleLinearQuantizerConfig,
)
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from delegates import lowered_modules
from rushlight.backends.coreml import CoreMLBackend, CoreMLPartitioner
from rushlight.backends.coreml.quantizer import CoreMLQuantizer
from rushlight.backends.coreml.tools import get_coreml_log_level
from rushlight.pipeline import to_edge_transform_and_lower


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.relu(self.conv(x)).mean((2, 3)))


IMAGE = (torch.randn(2, 3, 16, 16),)


def quantised(config: LinearQuantizerConfig) -> tuple[nn.Module, list[str]]:
    """The quantised model, and the names of its calls that quantise or dequantise."""
    torch.manual_seed(0)
    captured = torch.export.export(Small().eval(), IMAGE).module()
    prepared = prepare_pt2e(captured, CoreMLQuantizer(config))
    for _ in range(4):
        prepared(torch.randn(2, 3, 16, 16))
    made = convert_pt2e(prepared)
    calls = [str(n.target) for n in made.graph.nodes if "quantize_per" in str(n.target)]
    return made, calls


@pytest.mark.parametrize("scheme", ["symmetric", "affine"])
def test_a_quantised_model_goes_there_whole(scheme: str) -> None:
    config = LinearQuantizerConfig.from_dict({"global_config": {"quantization_scheme": scheme}})
    made, calls = quantised(config)
    assert any("dequantize_per_channel" in call for call in calls)
    torch.manual_seed(0)
    wanted = Small().eval()(*IMAGE)
    assert (made(*IMAGE) - wanted).abs().max() < 0.1 * wanted.abs().max()
    specs = CoreMLBackend.generate_compile_specs(minimum_deployment_target=target.iOS17)
    edge = to_edge_transform_and_lower(
        torch.export.export(made, IMAGE), partitioner=[CoreMLPartitioner(compile_specs=specs)]
    )
    assert len(lowered_modules(edge.exported_program())) == 1


def test_configurations_of_modules_win() -> None:
    linear = ModuleLinearQuantizerConfig(activation_dtype=torch.float32)
    by_type = LinearQuantizerConfig(global_config=None, module_type_configs={nn.Linear: linear})
    _, calls = quantised(by_type)
    assert calls == ["quantized_decomposed.dequantize_per_channel.default"]
    whole = ModuleLinearQuantizerConfig()
    by_name = LinearQuantizerConfig(global_config=whole, module_name_configs={"conv": None})
    _, calls = quantised(by_name)
    assert sum("dequantize_per_channel" in call for call in calls) == 1


def test_what_it_has_not_is_refused() -> None:
    config = ModuleLinearQuantizerConfig(weight_observer="ema_min_max")
    with pytest.raises(ValueError, match="weight_observer='ema_min_max'"):
        CoreMLQuantizer(LinearQuantizerConfig(global_config=config))


def test_the_level_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ET_COREML_LOG_LEVEL", raising=False)
    assert get_coreml_log_level(logging.ERROR) == logging.ERROR
    monkeypatch.setenv("ET_COREML_LOG_LEVEL", "debug")
    assert get_coreml_log_level(logging.ERROR) == logging.DEBUG
    monkeypatch.setenv("ET_COREML_LOG_LEVEL", "loud")
    with pytest.raises(ValueError, match="LOUD"):
        get_coreml_log_level(logging.ERROR)
