"""A quantizer with a pattern of the user's own, and the annotators' helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import MinMaxObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    get_input_act_qspec,
    get_output_act_qspec,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from rushlight.backends.xnnpack.annotators import (
    CONV_TARGETS,
    OP_TO_ANNOTATOR,
    change_quantization_config,
    get_groups_from_conv,
    register_annotator,
)
from rushlight.backends.xnnpack.quantizer import (
    QuantPattern,
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from rushlight.errors import ExportError

aten = torch.ops.aten


@pytest.fixture
def halved() -> Iterator[str]:
    """The name of a pattern: `x - y`, which XNNPACKQuantizer has not."""

    @register_annotator("sub")
    def annotate(
        gm: GraphModule,
        quantization_config: QuantizationConfig | None,
        filter_fn: Callable[[Node], bool] | None = None,
    ) -> list[list[Node]]:
        calls = [n for n in gm.graph.nodes if n.target == aten.sub.Tensor]
        wanted = [n for n in calls if filter_fn is None or filter_fn(n)]
        for node in wanted:
            node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(
                input_qspec_map={n: get_input_act_qspec(quantization_config) for n in node.args},
                output_qspec=get_output_act_qspec(quantization_config),
                _annotated=True,
            )
        return [[node] for node in wanted]

    yield "sub"
    del OP_TO_ANNOTATOR["sub"]


class Difference(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x - y


def quantising(quantizer: XNNPACKQuantizer) -> int:
    """How many calls quantise, once `x - y` is quantised."""
    inputs = (torch.randn(4), torch.randn(4))
    prepared = prepare_pt2e(torch.export.export(Difference(), inputs).module(), quantizer)
    prepared(*inputs)
    made = convert_pt2e(prepared)
    target = torch.ops.quantized_decomposed.quantize_per_tensor.default
    return sum(node.target == target for node in made.graph.nodes)


def test_a_pattern_of_the_users_own_is_annotated_for_what_it_asks(halved: str) -> None:
    pattern = QuantPattern(halved, False, False, {aten.sub.Tensor})

    class Quantizer(XNNPACKQuantizer):
        SUPPORTED_PATTERNS: ClassVar = [*XNNPACKQuantizer.SUPPORTED_PATTERNS, pattern]

    config = get_symmetric_quantization_config()
    assert quantising(XNNPACKQuantizer().set_global(config)) == 0
    assert quantising(Quantizer().set_global(config)) == 3
    assert quantising(Quantizer()) == 0
    dynamic = get_symmetric_quantization_config(is_dynamic=True)
    assert quantising(Quantizer().set_global(dynamic)) == 0


def test_configurations_are_torchaos() -> None:
    config = get_symmetric_quantization_config(True, act_qmin=-100)
    assert isinstance(config, QuantizationConfig)
    assert config.input_activation is not None and config.input_activation.quant_min == -100


def test_a_specification_is_changed_where_values_are_given() -> None:
    spec = QuantizationSpec(torch.int8, MinMaxObserver, -128, 127)
    changed = change_quantization_config(spec, quant_min=0, quant_max=None)
    assert (changed.quant_min, changed.quant_max, changed.dtype) == (0, 127, torch.int8)


def test_groups_of_convolutions() -> None:
    for module, groups in (
        (torch.nn.Conv2d(4, 8, 3, groups=2), 2),
        (torch.nn.Conv1d(4, 8, 3), 1),
        (torch.nn.ConvTranspose2d(4, 8, 3, groups=4), 4),
    ):
        x = torch.randn(1, 4, 8, 8) if module.weight.dim() == 4 else torch.randn(1, 4, 8)
        graph = torch.export.export(module, (x,)).graph
        [*_, call, output] = graph.nodes
        assert get_groups_from_conv(call) == groups
        assert (call.target in CONV_TARGETS) is not isinstance(module, torch.nn.ConvTranspose2d)
        with pytest.raises(ExportError, match="no convolution"):
            get_groups_from_conv(output)
