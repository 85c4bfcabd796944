"""`CpuQuantizer`: configurations for parts, other quantizers beside it, what it refuses."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantizer import (
    ComposableQuantizer,
    QuantizationAnnotation,
    Quantizer,
)
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

import rushlight
from rushlight.errors import Code, ExportError
from rushlight.quantization import CpuQuantizer, dynamic_config, static_config

aten = torch.ops.aten


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(x).mean((2, 3)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def data() -> list[tuple[torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(2, 4, 6, 6),) for _ in range(3)]


def integer_layers(net: nn.Module, quantizer: Quantizer) -> Counter[object]:
    """The products of the quantised graph whose weight is integers, by operator."""
    program = rushlight.quantize(net, calibrate=data(), recipe=quantizer)
    expected = rushlight.load(rushlight.export(program).buffer)(data()[0][0])
    assert torch.allclose(expected, program.module()(data()[0][0]), atol=0.05)
    return Counter(
        node.target
        for node in program.graph.nodes
        if node.target in (aten.conv2d.default, aten.linear.default)
        and "dequantize" in str(node.args[1].target)
    )


def test_a_module_keeps_its_real_numbers(net: Net) -> None:
    quantizer = CpuQuantizer(static_config()).set_module_name("blocks.0", None)
    assert integer_layers(net, quantizer) == {aten.conv2d.default: 1, aten.linear.default: 1}
    quantizer = CpuQuantizer(static_config()).set_module_type(Block, None)
    assert integer_layers(net, quantizer) == {aten.linear.default: 1}
    quantizer = CpuQuantizer(static_config()).set_operator_type(aten.linear, None)
    assert integer_layers(net, quantizer) == {aten.conv2d.default: 2}


def test_the_smaller_part_wins(net: Net) -> None:
    config = static_config()
    quantizer = (
        CpuQuantizer()
        .set_operator_type(aten.conv2d.default, config)
        .set_module_type(Block, None)
        .set_module_name("blocks.1", config)
    )
    assert integer_layers(net, quantizer) == {aten.conv2d.default: 1}
    quantizer = CpuQuantizer(config).set_filter_function(lambda node: "linear" in node.name)
    assert integer_layers(net, quantizer) == {aten.linear.default: 1}


def test_parts_have_precisions_of_their_own(net: Net) -> None:
    quantizer = CpuQuantizer(static_config()).set_module_name("head", dynamic_config())
    program = rushlight.quantize(net, calibrate=data(), recipe=quantizer)
    names = [str(node.target) for node in program.graph.nodes]
    assert sum("quantize_per_token.default" in name for name in names) == 2
    assert sum(".quantize_per_tensor.default" in name for name in names) == 4


def test_quantizers_compose(net: Net) -> None:
    first = CpuQuantizer().set_module_name("blocks.0", static_config())
    second = CpuQuantizer(static_config(activation_bits=16))
    quantizer = ComposableQuantizer([first, second])
    assert integer_layers(net, quantizer) == {aten.conv2d.default: 2, aten.linear.default: 1}


class OfAnother(Quantizer):
    """A foreign quantizer, which quantises one value."""

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        spec = static_config().input_activation
        for node in model.graph.nodes:
            if node.target is aten.mean.dim:
                inputs = {node.args[0]: spec}
                node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(inputs, spec, _annotated=True)
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        pass


def test_any_quantizer_of_the_protocol_will_do(net: Net) -> None:
    program = rushlight.quantize(net, calibrate=data(), recipe=OfAnother())
    names = [str(node.target) for node in program.graph.nodes]
    assert sum(".quantize_per_tensor.default" in name for name in names) == 2


def test_a_norm_is_not_folded_into_what_others_use() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            return x + self.norm(x)

    torch.manual_seed(0)
    model = Twice().eval()
    model.norm.weight.data.uniform_(2, 4)
    model.norm.running_mean.fill_(1.0)
    program = rushlight.quantize(model, calibrate=data())
    exact = model(data()[0][0])
    error = (program.module()(data()[0][0]) - exact).square().mean()
    assert error < 1e-3 * exact.square().mean()


def test_operators_that_change_their_input() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            nn.functional.relu_(y)
            z = self.second(y)
            z += y
            return z

    torch.manual_seed(0)
    model = InPlace().eval()
    program = rushlight.quantize(model, calibrate=data())
    exact = model(data()[0][0])
    error = (program.module()(data()[0][0]) - exact).square().mean()
    assert error < 1e-3 * exact.square().mean()
    names = [str(node.target) for node in program.graph.nodes]
    assert sum(".quantize_per_tensor.default" in name for name in names) == 4


def test_state_is_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(6, 6)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.last(x) + self.calls

    model = Counting().eval()
    program = rushlight.quantize(model, calibrate=data())
    assert model.calls == 0
    module = rushlight.load(rushlight.export(program).buffer)
    first, second = module(data()[0][0]), module(data()[0][0])
    assert torch.allclose(second - first, torch.ones(1), atol=0.1)


def test_what_is_no_integer_anyway_stays_real() -> None:
    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.last = nn.LayerNorm(6), nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.norm(x)) * self.norm(x)
            return self.last(x)

    program = rushlight.quantize(Between().eval(), calibrate=data())
    names = [str(node.target) for node in program.graph.nodes]
    assert sum(".quantize_per_tensor.default" in name for name in names) == 2


def test_nothing_to_quantise_is_an_error() -> None:
    with pytest.raises(ExportError, match="nothing in the model is what the recipe quantises"):
        rushlight.quantize(nn.LayerNorm(6), calibrate=data())
    with pytest.raises(ExportError, match="the model has none"):
        rushlight.quantize(nn.LayerNorm(6), data()[0], recipe="int8-weights")


def test_other_dtypes_are_refused_by_layer(net: Net) -> None:
    half = [(x.half(),) for (x,) in data()]
    with pytest.raises(ExportError, match=r"conv2d of blocks\.0\.conv .*torch\.float16") as error:
        rushlight.quantize(net.half(), calibrate=half)
    assert error.value.code == Code.INVALID_TYPE


def test_a_misspelt_module_is_named(net: Net) -> None:
    name = next(n for n, m in net.named_modules() if isinstance(m, nn.Conv2d) and "." in n)
    wrong = f"{name}x"
    quantizer = CpuQuantizer().set_module_name(wrong, static_config())
    told = rf"set_module_name\('{wrong}'\): the model calls no such module, did you mean '{name}'"
    with pytest.raises(ExportError, match=f"nothing is quantised: {told}") as caught:
        rushlight.quantize(net, calibrate=data(), recipe=quantizer)
    assert caught.value.code == Code.INVALID_ARGUMENT
    with pytest.warns(UserWarning, match=told):
        rushlight.quantize(net, calibrate=data(), recipe=quantizer.set_global(static_config()))


def test_a_quantizer_without_static_scales_needs_no_data() -> None:
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8)).eval(), torch.randn(2, 64)
    program = rushlight.quantize(model, (x,), recipe=CpuQuantizer(dynamic_config()))
    wanted = rushlight.quantize(model, (x,), recipe="int8-dynamic").module()(x)
    torch.testing.assert_close(program.module()(x), wanted, rtol=0, atol=0)
    mixed = CpuQuantizer(dynamic_config()).set_module_name("1", static_config())
    with pytest.raises(ExportError, match=r"'CpuQuantizer' finds the ranges .*calibrate="):
        rushlight.quantize(model, (x,), recipe=mixed)
