"""The cpu backend: statically quantised graphs become operators on integers, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cpu_models import Call
from cpu_quantized_models import (
    INT8,
    UINT8,
    Conv,
    Holding,
    Linear,
    dequantized,
    left_of,
    lowered,
    names_of,
    near,
    nodes_in,
    qdq,
    quantized,
    rows_at_run,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

import rushlight as rl
from rushlight.backends.cpu import CpuPartitioner
from rushlight.schema import cpu_engine as fb


def image(channels: int = 6, height: int = 9, width: int = 11) -> Tensor:
    return torch.randn(2, channels, height, width)


class Between(nn.Module):
    """A module with a quantised input and result, and perhaps an activation before the latter."""

    def __init__(self, inner: nn.Module, after: Any = None, kind: Any = INT8) -> None:
        super().__init__()
        self.inner, self.after, self.kind = inner, after, kind

    def forward(self, x: Tensor) -> Tensor:
        zero = 3 if self.kind == INT8 else 131
        y = self.inner(qdq(x, 0.03, zero, self.kind))
        return qdq(y if self.after is None else self.after(y), 0.05, zero - 10, self.kind)


PRODUCT = ["Convert", "QuantizedProduct", "Convert"]
IMAGES = ["Convert", "QuantizedConvolution", "Copy", "Convert"]


@pytest.mark.parametrize(
    "sizes, settings, kind",
    [
        ((8, 5), {}, INT8),
        ((16, 64), {"bias": False}, UINT8),
        ((33, 7), {"per_channel": False}, UINT8),
        ((1, 1), {"per_channel": False, "bias": False}, INT8),
        ((17, 130), {"low": -8}, INT8),
    ],
)
def test_linear(sizes: tuple[int, int], settings: dict[str, Any], kind: Any) -> None:
    model = Between(Linear(*sizes, **settings), kind=kind)
    assert whole(model, torch.randn(3, 4, sizes[1]), scale=0.05, most=1) == PRODUCT


CONVOLUTIONS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((8, 6, 3, 3), {}),
    ((20, 6, 3, 2), {"padding": (1, 0), "stride": 2}),
    ((5, 6, 2, 3), {"dilation": 2, "padding": 2}),
    ((12, 3, 3, 3), {"groups": 2, "padding": 1}),
    ((40, 3, 1, 1), {"groups": 2}),
    ((6, 1, 3, 3), {"groups": 6, "padding": 1}),
    ((6, 1, 5, 5), {"groups": 6, "padding": 2, "stride": 2}),
    ((12, 1, 3, 3), {"groups": 6, "padding": 1}),
    ((10, 6, 1, 1), {"stride": 2}),
]


def test_convolutions() -> None:
    parts = [Between(Conv(*sizes, **window)) for sizes, window in CONVOLUTIONS]

    def forward(x: Tensor) -> list[Tensor]:
        return [part(x) for part in parts]

    operators = whole(Holding(*parts, forward), image(), scale=0.05, most=1)
    assert operators.count("QuantizedConvolution") == len(parts)
    assert set(operators) == set(IMAGES)


def test_pointwise_convolutions_are_products() -> None:
    operators = whole(Between(Conv(10, 6, 1, 1)), image(), scale=0.05, most=1)
    assert operators == ["Convert", "Copy", "QuantizedProduct", "Copy", "Convert"]


def test_convolutions_over_lines() -> None:
    model = Between(Conv(8, 6, 3, padding=1, stride=2))
    operators = whole(model, torch.randn(2, 6, 21), scale=0.05, most=1)
    assert "QuantizedConvolution" in operators


@pytest.mark.parametrize(
    "after, low, high",
    [
        (torch.relu, 121, 255),
        (nn.Hardtanh(-1.0, 2.0), 101, 161),
        (nn.ReLU6(), 121, 241),
        (lambda y: y.clamp(min=-0.5), 111, 255),
        (lambda y: torch.relu(y).clamp(max=0.2), 121, 125),
    ],
)
def test_activations_are_clamps_of_results(after: Any, low: int, high: int) -> None:
    model = Between(Linear(8, 16), after)
    assert whole(model, torch.randn(5, 16), scale=0.05, most=1) == PRODUCT
    [_, product, _] = nodes_in(lowered(model, torch.randn(5, 16)))
    assert product.operation.requantize == fb.Requantize(121, low, high)


def test_a_clamp_between_two_quantisations_is_one_of_the_result_before_it() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(8, 16)

        def forward(self, x: Tensor) -> Tensor:
            y = qdq(self.linear(qdq(x, 0.03)), 0.05, -7)
            return qdq(functional.hardtanh(y, 0, 2), 0.05, -7)

    assert whole(Model(), torch.randn(5, 16), scale=0.05, most=1) == PRODUCT


def test_float32_results() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(8, 16)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(qdq(x, 0.03, 4))

    operators = whole(Model(), torch.randn(5, 16), scale=1e-3, most=1)
    assert operators == ["Convert", "QuantizedProduct"]


def test_integers_in_and_out() -> None:
    linear = Linear(8, 16)

    def forward(x: Tensor) -> Tensor:
        return quantized(linear(dequantized(x, 0.03, 4)), 0.05, -7)

    x = torch.randint(-128, 128, (5, 16), dtype=torch.int8)
    assert whole(Holding(linear, forward), x, scale=1, most=1) == PRODUCT


def test_unsigned_integers_need_no_conversion() -> None:
    linear = Linear(8, 16)

    def forward(x: Tensor) -> Tensor:
        return quantized(linear(dequantized(x, 0.03, 130, UINT8)), 0.05, 120, UINT8)

    x = torch.randint(0, 256, (5, 16), dtype=torch.uint8)
    assert whole(Holding(linear, forward), x, scale=1, most=1) == ["QuantizedProduct"]


# --- of bytes -------------------------------------------------------------------------------------


BINARY = [
    torch.add,
    torch.sub,
    torch.mul,
    lambda a, b: torch.relu(a + b),
    lambda a, b: torch.add(a, b, alpha=-0.5),
    lambda a, b: torch.sub(a, b, alpha=-2),
]


@pytest.mark.parametrize("shape", [(4, 5, 7), (1, 5, 1), (7,), (5, 7)])
def test_binary(shape: tuple[int, ...]) -> None:
    def forward(a: Tensor, b: Tensor) -> list[Tensor]:
        x, y = qdq(a, 0.03, 4), qdq(b, 0.02, -9)
        return [qdq(function(x, y), 0.04, 11) for function in BINARY]

    operators = whole(Call(forward), torch.randn(4, 5, 7), torch.randn(shape), scale=0.04, most=1)
    assert operators.count("QuantizedBinary") == len(BINARY)
    assert operators.count("Convert") == 2 + len(BINARY) == len(operators) - len(BINARY)


def test_scales_too_far_apart_stay_float32() -> None:
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return qdq(qdq(a, 40.0) + qdq(b, 0.02), 0.04)

    names = {type(s.operation).__name__ for s in nodes_in(lowered(Call(forward), *[image()] * 2))}
    assert names == {"Convert", "Elementwise"}


FUNCTIONS = [
    torch.sigmoid,
    torch.tanh,
    functional.gelu,
    functional.hardswish,
    functional.silu,
    functional.leaky_relu,
    torch.relu,
    lambda x: x * functional.relu6(x + 3) / 6,
    lambda x: torch.where(x > 0.5, x, x * x),
    lambda x: x + 1.5,
    lambda x: x,
]


def test_functions_of_a_byte_are_tables() -> None:
    def forward(x: Tensor) -> list[Tensor]:
        quantised = qdq(x, 0.03, 4)
        return [qdq(function(quantised), 0.011, -3) for function in FUNCTIONS]

    operators = whole(Call(forward), image(), scale=0.011)
    assert operators.count("Lookup") == len(FUNCTIONS)
    assert operators.count("Convert") == 1 + len(FUNCTIONS) == len(operators) - len(FUNCTIONS)


def test_tables_behind_one_another_are_one() -> None:
    def forward(x: Tensor) -> Tensor:
        y = qdq(torch.sigmoid(qdq(x, 0.03, 4)), 1 / 256, -128)
        return qdq(torch.tanh(y), 0.01, 2)

    assert whole(Call(forward), image(), scale=0.01) == ["Convert", "Lookup", "Convert"]


POOLS = [
    nn.MaxPool2d(3, 2, 1),
    nn.MaxPool2d((2, 3), dilation=2),
    nn.AvgPool2d(2),
    nn.AvgPool2d(3, 2, 1),
    nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    nn.AvgPool2d(2, divisor_override=3),
    nn.AdaptiveAvgPool2d(1),
]


def test_pools() -> None:
    def forward(x: Tensor) -> list[Tensor]:
        return [qdq(pool(qdq(x, 0.03, 3)), 0.05, -7) for pool in POOLS]

    operators = whole(Call(forward), image(), scale=0.05, most=1)
    assert operators.count("QuantizedPooling") == len(POOLS)
    assert set(operators) == {"Convert", "Copy", "QuantizedPooling", "Lookup"}


def test_means_of_images() -> None:
    def forward(x: Tensor) -> Tensor:
        return qdq(qdq(x, 0.03, 4).mean((2, 3)), 0.01, 2)

    operators = whole(Call(forward), image(), scale=0.01, most=1)
    assert operators == ["Convert", "Copy", "QuantizedPooling", "Convert"]


MOVES = [
    lambda x: x.flatten(1),
    lambda x: x.permute(0, 2, 3, 1),
    lambda x: x[:, 1:4, ::2],
    lambda x: x[:, 2],
    lambda x: x.unsqueeze(1),
    lambda x: functional.pad(x, (1, 2, 0, 1)),
    lambda x: torch.cat([x, x[:, :2]], 1),
    lambda x: torch.cat(x.split([2, 1, 3], 1)[::-1], 1),
    lambda x: x.transpose(1, 2).reshape(2, 9, -1),
]


def test_movement_is_of_bytes() -> None:
    """The integers before and after it are the same, so there is one conversion at either end."""

    def forward(x: Tensor) -> list[Tensor]:
        return [qdq(move(qdq(x, 0.03, 4)), 0.03, 4) for move in MOVES]

    operators = whole(Call(forward), image(), scale=0.03)
    assert operators.count("Convert") == 1 + len(MOVES) and set(operators) == {"Convert", "Copy"}


def test_joined_pieces_of_other_scales_go_through_a_table() -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return qdq(torch.cat([qdq(x, 0.03, 4), qdq(y, 0.02, -5)], 1), 0.03, 4)

    operators = whole(Call(forward), image(), image(), scale=0.03)
    assert operators.count("Lookup") == 1 and operators.count("Convert") == 3


def test_pads_before_convolutions_are_part_of_them() -> None:
    conv = Conv(8, 6, 3, 3, stride=2)

    def forward(x: Tensor) -> Tensor:
        padded = qdq(functional.pad(qdq(x, 0.03, 4), (0, 1, 0, 1)), 0.03, 4)
        return qdq(conv(padded), 0.05)

    operators = whole(Holding(conv, forward), image(), scale=0.05, most=1)
    assert operators == IMAGES
    [window] = [
        s.operation
        for s in nodes_in(lowered(Holding(conv, forward), image()))
        if isinstance(s.operation, fb.QuantizedConvolution)
    ]
    assert window.padding == [0, 0, 1, 1] and window.padding_value == 132


# --- blocks ---------------------------------------------------------------------------------------


def residual_block() -> nn.Module:
    one, other = Conv(6, 6, 3, 3, padding=1), Conv(6, 6, 3, 3, padding=1)

    def forward(x: Tensor) -> Tensor:
        x = qdq(torch.relu(qdq(x, 0.03)), 0.03)
        y = qdq(torch.relu(one(x)), 0.03, -128)
        y = qdq(other(y), 0.05, 3)
        return qdq(torch.relu(x + y), 0.06, -128)

    return Holding(one, other, forward)


def inverted_block() -> nn.Module:
    parts = Conv(24, 6, 1, 1), Conv(24, 1, 3, 3, groups=24, padding=1), Conv(6, 24, 1, 1)

    def forward(x: Tensor) -> Tensor:
        x = qdq(x, 0.03)
        y = qdq(functional.hardtanh(qdq(parts[0](x), 0.04, -5), 0, 6), 0.04, -5)
        y = qdq(functional.relu6(parts[1](y)), 6 / 255, -128)
        return qdq(x + qdq(parts[2](y), 0.05, 3), 0.06, 1)

    return Holding(*parts, forward)


@pytest.mark.parametrize("make", [residual_block, inverted_block])
def test_blocks_are_integer_from_end_to_end(make: Any) -> None:
    """Each operator may be off by one integer, and then the operators after it too."""
    operators = whole(make(), image(), scale=0.06, most=3)
    assert operators[0] == operators[-1] == "Convert" and operators.count("Convert") == 2
    assert set(operators) <= {
        *("Convert", "Copy", "Lookup"),
        *("QuantizedConvolution", "QuantizedProduct", "QuantizedBinary"),
    }


# --- scales at their limits -----------------------------------------------------------------------


def test_a_channel_of_zeros_keeps_its_bias() -> None:
    """The channel has the observer's least scale, with which its bias exceeds an int32."""
    linear = Linear(8, 16)
    linear.weight[2] = 0
    linear.scales[2] = torch.finfo(torch.float32).eps
    linear.bias.data[2] = 1.5
    model = Between(linear)
    x = torch.randn(5, 16)
    whole(model, x, scale=0.05, most=1)
    assert torch.allclose(model(x)[:, 2], torch.tensor(1.5), atol=0.03)


def test_a_scale_that_underflows_is_refused_by_name() -> None:
    linear = Linear(8, 16)
    linear.scales[3] = 1e-38
    with pytest.raises(Exception, match=r"too small to compute with.*channel 3.*1e-38"):
        lowered(Between(linear), torch.randn(5, 16))


# --- what is left ---------------------------------------------------------------------------------


def test_other_integers_stay_with_a_reason() -> None:
    def forward(x: Tensor) -> Tensor:
        return qdq(x, 0.03, 4, (-32768, 32767, torch.int16))

    assert any(
        "int16" in (reason or "") for reason in left_of(lowered(Call(forward), image())).values()
    )


def test_transposed_convolutions_run_in_float32() -> None:
    conv = Conv(6, 4, 3, 3)

    def forward(x: Tensor) -> Tensor:
        made = functional.conv_transpose2d(qdq(x, 0.03), conv.number(), stride=2)
        return qdq(made, 0.05)

    edge = lowered(Holding(conv, forward), image())
    assert not left_of(edge)
    names = [type(s.operation).__name__ for s in nodes_in(edge)]
    assert names.count("Convert") == 4 and "Convolution" in names


def test_what_runs_in_float32_is_in_the_report() -> None:
    def forward(x: Tensor, y: Tensor) -> list[Tensor]:
        a, b = qdq(x, 0.03), qdq(y, 0.02)
        return [qdq(a / b, 0.1), qdq(a.softmax(-1), 0.01), qdq(qdq(x, 40.0) + b, 0.04), a + b]

    program = rl.export(Call(forward), (image(), image() + 5), backend="cpu", verify=False)
    [method] = program.report().methods
    notes = {one.op: one.reasons.get("CpuBackend", "") for one in method.coverage if one.backend}
    assert "no aten.div.Tensor of integers" in notes["aten.div.Tensor"]
    assert "of integers" in notes["aten._softmax.default"]
    notes_of_sums = {one.reasons["CpuBackend"] for one in method.coverage if "add" in one.op}
    assert any("too far apart" in note for note in notes_of_sums)
    assert any("its result is not quantised" in note for note in notes_of_sums)
    assert "taken, but" in str(program.report())


# --- partitions, sizes ----------------------------------------------------------------------------


def test_integers_are_passed_between_delegates() -> None:
    """The engine has no cumulative sum, so there is one delegate before it and one after it."""
    one = Linear(16, 16)

    def forward(x: Tensor) -> Tensor:
        quantised = qdq(x, 0.03)
        y, z = qdq(one(quantised), 0.05, 3), qdq(quantised.cumsum(0), 0.04, -5)
        return qdq(y + z, 0.06)

    model, x = Holding(one, forward), torch.randn(5, 16)
    edge = lowered(model, x)
    assert list(left_of(edge)) == ["cumsum"]
    operators = names_of(nodes_in(edge))
    assert "QuantizedBinary" in operators and "Elementwise" not in operators
    module = rl.load(bytes(edge.to_executorch().buffer))
    near(module(x), model(x), 0.12, "the sum")


def test_weights_of_two_delegates_stay_with_the_first() -> None:
    one = Linear(16, 16)

    def forward(x: Tensor) -> Tensor:
        y = qdq(one(qdq(x, 0.03)), 0.05, 3)
        return one(qdq(y.cumsum(0), 0.04, -5))

    model, x = Holding(one, forward), torch.randn(5, 16)
    edge = lowered(model, x)
    assert any("in another partition" in (reason or "") for reason in left_of(edge).values())
    module = rl.load(bytes(edge.to_executorch().buffer))
    near(module(x), model(x), 0.1, "the second product")


def test_batches_of_any_size() -> None:
    conv, point, linear = Conv(8, 6, 3, 3, padding=1), Conv(8, 8, 1, 1), Linear(5, 8)

    def forward(x: Tensor) -> list[Tensor]:
        y = qdq(torch.relu(conv(qdq(x, 0.03))), 0.03, -128)
        y = qdq(y + qdq(point(y), 0.05, 3), 0.05, 3)
        y = qdq(functional.max_pool2d(y, 2).sigmoid(), 1 / 256, -128).permute(0, 2, 3, 1)
        return [qdq(linear(y), 0.05), linear(rows_at_run(y))]

    model = Holding(conv, point, linear, forward).eval()
    sizes = (({0: torch.export.Dim("batch", max=8)},),)
    exported = torch.export.export(model, (torch.randn(2, 6, 16, 16),), dynamic_shapes=sizes)
    edge = rl.to_edge_transform_and_lower(exported, partitioner=[CpuPartitioner()])
    assert not left_of(edge)
    module = rl.load(bytes(edge.to_executorch().buffer))
    with torch.no_grad():
        for batch in (2, 8, 1):
            x = torch.randn(batch, 6, 16, 16)
            for ours, eager in zip(module(x), model(x), strict=True):
                near(ours, eager, 0.05, f"a batch of {batch}")
