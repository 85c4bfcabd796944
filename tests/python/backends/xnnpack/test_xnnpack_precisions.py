"""Tests of the options that choose what XNNPACK takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from rushlight.backends.xnnpack import XnnpackPartitioner
from rushlight.backends.xnnpack.pass_manager import XNNPACKPassManager
from rushlight.backends.xnnpack.precision import ConfigPrecisionType as Precision
from rushlight.backends.xnnpack.quantizer import XNNPACKQuantizer
from rushlight.backends.xnnpack.quantizer import (
    get_symmetric_quantization_config as xnnpack_config,
)
from rushlight.errors import ExportError
from rushlight.pipeline import to_edge, to_edge_transform_and_lower
from rushlight.quantization import CpuQuantizer, get_symmetric_quantization_config
from rushlight.runtime import Runtime


def delegates(model: nn.Module, x: torch.Tensor, partitioner: XnnpackPartitioner) -> int:
    lowered = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=partitioner)
    return sum("call_delegate" in str(n.target) for n in lowered.exported_program().graph.nodes)


def test_precisions_choose_the_calls() -> None:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4)).eval(), torch.randn(2, 8)
    quantizer = CpuQuantizer(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    prepared(x)
    quantised = convert_pt2e(prepared)
    assert delegates(model, x, XnnpackPartitioner(config_precisions=Precision.FP32)) == 1
    assert delegates(model, x, XnnpackPartitioner(config_precisions=Precision.DYNAMIC_QUANT)) == 0
    static = XnnpackPartitioner(config_precisions=[Precision.STATIC_QUANT])
    assert delegates(quantised, x, static) == 1
    # The layers are computed with floats, between calls that quantise and dequantise.
    floats = XnnpackPartitioner(config_precisions=Precision.FP32)
    assert delegates(quantised, x, floats) == 2
    lowered = to_edge_transform_and_lower(torch.export.export(quantised, (x,)), partitioner=floats)
    program = Runtime.get().load_program(lowered.to_executorch().buffer)
    (actual,) = program.load_method("forward").execute([x])
    torch.testing.assert_close(actual, quantised(x), atol=0.05, rtol=0.05)


def test_each_call_gets_its_own_delegate() -> None:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(2, 8)
    assert delegates(model, x, XnnpackPartitioner()) == 1
    assert delegates(model, x, XnnpackPartitioner(per_op_mode=True)) == 3


def test_calls_that_copy_are_taken_alone_and_views_are_not() -> None:
    class Copies(nn.Module):
        def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
            super().__init__()
            self.forward = function

    x = torch.randn(2, 3, 4)
    for copies in (
        lambda x: x[:, 1:],
        lambda x: torch.cat([x, x], -1),
        lambda x: nn.functional.pad(x, (1, 1)),
    ):
        assert delegates(Copies(copies), x, XnnpackPartitioner()) == 1
    assert delegates(Copies(lambda x: x.reshape(6, 4)), x, XnnpackPartitioner()) == 0
    assert delegates(Copies(lambda x: x.permute(1, 0, 2)), x, XnnpackPartitioner()) == 0


@pytest.mark.parametrize("has_bias", [True, False])
def test_weights_may_stay_in_the_program(has_bias: bool) -> None:
    model, x = nn.Sequential(nn.Linear(8, 4, bias=has_bias), nn.ReLU()).eval(), torch.randn(2, 8)
    partitioner = XnnpackPartitioner(force_non_static_weights_for_f32_linear=True)
    lowered = to_edge_transform_and_lower(torch.export.export(model, (x,)), partitioner=partitioner)
    program = lowered.exported_program()
    assert len(program.graph_signature.parameters) == 1 + has_bias
    (call,) = (n for n in program.graph.nodes if "call_delegate" in str(n.target))
    assert len(call.args) == 3 + has_bias  # the module, x and the weights
    method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], model(x))
    lowered = to_edge_transform_and_lower(
        torch.export.export(model, (x,)), partitioner=XnnpackPartitioner()
    )
    assert not lowered.exported_program().graph_signature.parameters


def test_what_is_no_class_of_calls_is_refused() -> None:
    with pytest.raises(ExportError, match="configs"):
        XnnpackPartitioner(configs=[object])


def test_the_pass_manager_runs_classes_and_passes() -> None:
    class ToProduct:
        def __call__(self, module: GraphModule) -> PassResult:
            for node in module.graph.nodes:
                if node.target == torch.ops.aten.relu.default:
                    node.target = torch.ops.aten.neg.default
            return PassResult(module, True)

    program = to_edge(torch.export.export(nn.ReLU(), (torch.ones(2),))).exported_program()
    changed = XNNPACKPassManager(program, [ToProduct]).transform()
    assert torch.equal(changed.module()(torch.ones(2)), -torch.ones(2))


def test_dynamic_scales_of_whole_tensors_are_annotated() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.depthwise = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1, groups=2)
            self.linear = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(self.depthwise(self.dense(x)).flatten(1))

    x = torch.randn(1, 2, 1, 2)
    config = xnnpack_config(is_per_channel=True, is_dynamic=True)
    quantizer = XNNPACKQuantizer().set_global(config)
    prepared = prepare_pt2e(torch.export.export(Model().eval(), (x,)).module(), quantizer)
    prepared(x)
    code = convert_pt2e(prepared).code
    assert code.count("choose_qparams.tensor(") == 2  # the linear layer and the dense convolution
    with pytest.raises(ExportError, match="set_filter_function"):
        XNNPACKQuantizer().set_module_name("linear", None)


class Images(nn.Module):
    """A transposed convolution, one with ReLU and padding by name, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.grouped = nn.ConvTranspose2d(2, 4, 3), nn.ConvTranspose2d(4, 4, 2, groups=2)
        self.conv, self.linear = nn.Conv2d(4, 2, 3, padding="same"), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.conv(self.grouped(self.up(x))).relu())


def quantised(model: nn.Module, x: torch.Tensor, quantizer: XNNPACKQuantizer) -> GraphModule:
    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    prepared(x)
    return convert_pt2e(prepared)


def test_transposed_convolutions_are_quantised_by_output_channel() -> None:
    model, x = Images().eval(), torch.randn(1, 2, 4, 4)
    converted = quantised(
        model, x, XNNPACKQuantizer().set_global(xnnpack_config(is_per_channel=True))
    )
    weights = [n for n in converted.graph.nodes if "dequantize_per_channel" in str(n.target)]
    axes = {next(iter(n.users)).target.__name__.partition(".")[0]: n.args[3] for n in weights}
    assert axes == {"conv_transpose2d": 1, "conv2d": 0, "linear": 0}
    assert len(weights) == 3  # XNNPACK's grouped transposed convolutions are of floats
    torch.testing.assert_close(converted(x), model(x), atol=0.1, rtol=0.1)
    lowered = to_edge_transform_and_lower(
        torch.export.export(converted, (x,)), partitioner=XnnpackPartitioner()
    )
    method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute([x])[0], converted(x), atol=0.02, rtol=0.02)


def test_a_configuration_of_an_operator_is_for_its_calls_alone() -> None:
    model, x = Images().eval(), torch.randn(1, 2, 4, 4)
    quantizer = XNNPACKQuantizer().set_operator_type(
        torch.ops.aten.linear.default, xnnpack_config(is_per_channel=True, is_dynamic=True)
    )
    code = quantised(model, x, quantizer).code
    assert (
        code.count("choose_qparams.tensor(") == code.count("dequantize_per_channel.default(") == 1
    )
    # A module's name wins over its operator, and what neither names is left alone.
    quantizer.set_module_name("up", xnnpack_config())
    code = quantised(model, x, quantizer).code
    assert code.count("choose_qparams.tensor(") == 1
    assert code.count(".quantize_per_tensor.default(") == 2  # around the transposed convolution
