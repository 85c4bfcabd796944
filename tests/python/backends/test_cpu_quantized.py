"""The cpu backend: graphs that are quantised statically become integer steps, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cpu_models import Call
from cpu_quantized_models import (
    INT8,
    UINT8,
    Conv,
    Linear,
    dequantized,
    left_of,
    lowered,
    qdq,
    quantized,
    steps_in,
    whole,
)
from torch import Tensor, nn
from torch.nn import functional

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
IMAGES = ["Convert", "Copy", "QuantizedConvolution", "Copy", "Convert"]


@pytest.mark.parametrize("kind", [INT8, UINT8], ids=["int8", "uint8"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("sizes", [(8, 5), (16, 64), (33, 7), (1, 1), (17, 130)])
def test_linear(sizes: tuple[int, int], per_channel: bool, bias: bool, kind: Any) -> None:
    model = Between(Linear(*sizes, bias=bias, per_channel=per_channel), kind=kind)
    assert whole(model, torch.randn(3, 4, sizes[1]), step=0.05, most=1) == PRODUCT


@pytest.mark.parametrize(
    "sizes, window",
    [
        ((8, 6, 3, 3), {}),
        ((20, 6, 3, 2), {"padding": (1, 0), "stride": 2}),
        ((5, 6, 2, 3), {"dilation": 2, "padding": 2}),
        ((12, 3, 3, 3), {"groups": 2, "padding": 1}),
        ((40, 3, 1, 1), {"groups": 2}),
        ((6, 1, 3, 3), {"groups": 6, "padding": 1}),
        ((6, 1, 5, 5), {"groups": 6, "padding": 2, "stride": 2}),
        ((12, 1, 3, 3), {"groups": 6, "padding": 1}),
        ((10, 6, 1, 1), {"stride": 2}),
    ],
)
def test_convolutions(sizes: tuple[int, ...], window: dict[str, Any]) -> None:
    steps = whole(Between(Conv(*sizes, **window)), image(), step=0.05, most=1)
    assert steps == IMAGES


def test_pointwise_convolutions_are_products() -> None:
    steps = whole(Between(Conv(10, 6, 1, 1)), image(), step=0.05, most=1)
    assert steps == ["Convert", "Copy", "QuantizedProduct", "Copy", "Convert"]


def test_convolutions_over_lines() -> None:
    model = Between(Conv(8, 6, 3, padding=1, stride=2))
    steps = whole(model, torch.randn(2, 6, 21), step=0.05, most=1)
    assert "QuantizedConvolution" in steps


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
    assert whole(model, torch.randn(5, 16), step=0.05, most=1) == PRODUCT
    [_, product, _] = steps_in(lowered(model, torch.randn(5, 16)))
    assert product.operation.requantize == fb.Requantize(121, low, high)


def test_a_clamp_between_two_quantisations_is_one_of_the_result_before_it() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(8, 16)

        def forward(self, x: Tensor) -> Tensor:
            y = qdq(self.linear(qdq(x, 0.03)), 0.05, -7)
            return qdq(functional.hardtanh(y, 0, 2), 0.05, -7)

    assert whole(Model(), torch.randn(5, 16), step=0.05, most=1) == PRODUCT


def test_float32_results() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(8, 16)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(qdq(x, 0.03, 4))

    steps = whole(Model(), torch.randn(5, 16), step=1e-3, most=1)
    assert steps == ["Convert", "QuantizedProduct"]


def test_integers_in_and_out() -> None:
    linear = Linear(8, 16)

    def forward(x: Tensor) -> Tensor:
        return quantized(linear(dequantized(x, 0.03, 4)), 0.05, -7)

    x = torch.randint(-128, 128, (5, 16), dtype=torch.int8)
    assert whole(Holding(linear, forward), x, step=1, most=1) == PRODUCT


def test_unsigned_integers_need_no_conversion() -> None:
    linear = Linear(8, 16)

    def forward(x: Tensor) -> Tensor:
        return quantized(linear(dequantized(x, 0.03, 130, UINT8)), 0.05, 120, UINT8)

    x = torch.randint(0, 256, (5, 16), dtype=torch.uint8)
    assert whole(Holding(linear, forward), x, step=1, most=1) == ["QuantizedProduct"]


class Holding(nn.Module):
    """A function and the modules that it uses."""

    def __init__(self, *parts: Any) -> None:
        super().__init__()
        *modules, self.function = parts
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


# --- of bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        torch.add,
        torch.sub,
        torch.mul,
        lambda a, b: torch.relu(a + b),
        lambda a, b: torch.add(a, b, alpha=-0.5),
        lambda a, b: torch.sub(a, b, alpha=-2),
    ],
)
@pytest.mark.parametrize("shape", [(4, 5, 7), (1, 5, 1), (7,), (5, 7)])
def test_binary(function: Any, shape: tuple[int, ...]) -> None:
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return qdq(function(qdq(a, 0.03, 4), qdq(b, 0.02, -9)), 0.04, 11)

    steps = whole(Call(forward), torch.randn(4, 5, 7), torch.randn(shape), step=0.04, most=1)
    assert steps == ["Convert", "Convert", "QuantizedBinary", "Convert"]


def test_scales_too_far_apart_stay_float32() -> None:
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return qdq(qdq(a, 40.0) + qdq(b, 0.02), 0.04)

    names = {type(s.operation).__name__ for s in steps_in(lowered(Call(forward), *[image()] * 2))}
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


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_a_byte_are_tables(function: Any) -> None:
    def forward(x: Tensor) -> Tensor:
        return qdq(function(qdq(x, 0.03, 4)), 0.011, -3)

    assert whole(Call(forward), image(), step=0.011) == ["Convert", "Lookup", "Convert"]


def test_tables_behind_one_another_are_one() -> None:
    def forward(x: Tensor) -> Tensor:
        y = qdq(torch.sigmoid(qdq(x, 0.03, 4)), 1 / 256, -128)
        return qdq(torch.tanh(y), 0.01, 2)

    assert whole(Call(forward), image(), step=0.01) == ["Convert", "Lookup", "Convert"]


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(3, 2, 1),
        nn.MaxPool2d((2, 3), dilation=2),
        nn.AvgPool2d(2),
        nn.AvgPool2d(3, 2, 1),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        nn.AvgPool2d(2, divisor_override=3),
        nn.AdaptiveAvgPool2d(1),
    ],
)
def test_pools(pool: nn.Module) -> None:
    steps = whole(Between(pool), image(), step=0.05, most=1)
    expected = {"Convert", "Copy", "QuantizedPooling"}
    # A maximum of the input's integers is requantised behind it.
    assert set(steps) - {"Lookup"} == expected


def test_means_of_images() -> None:
    def forward(x: Tensor) -> Tensor:
        return qdq(qdq(x, 0.03, 4).mean((2, 3)), 0.01, 2)

    steps = whole(Call(forward), image(), step=0.01, most=1)
    assert steps == ["Convert", "Copy", "QuantizedPooling", "Convert"]


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


@pytest.mark.parametrize("move", MOVES)
def test_movement_is_of_bytes(move: Any) -> None:
    """Before and behind it are the same integers, so there is one conversion at either end."""

    def forward(x: Tensor) -> Tensor:
        return qdq(move(qdq(x, 0.03, 4)), 0.03, 4)

    steps = whole(Call(forward), image(), step=0.03)
    assert steps[0] == steps[-1] == "Convert" and set(steps[1:-1]) <= {"Copy"}


def test_joined_pieces_of_other_scales_go_through_a_table() -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return qdq(torch.cat([qdq(x, 0.03, 4), qdq(y, 0.02, -5)], 1), 0.03, 4)

    steps = whole(Call(forward), image(), image(), step=0.03)
    assert steps.count("Lookup") == 1 and steps.count("Convert") == 3


def test_pads_before_convolutions_are_part_of_them() -> None:
    conv = Conv(8, 6, 3, 3, stride=2)

    def forward(x: Tensor) -> Tensor:
        padded = qdq(functional.pad(qdq(x, 0.03, 4), (0, 1, 0, 1)), 0.03, 4)
        return qdq(conv(padded), 0.05)

    steps = whole(Holding(conv, forward), image(), step=0.05, most=1)
    assert steps == IMAGES
    [window] = [
        s.operation
        for s in steps_in(lowered(Holding(conv, forward), image()))
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
    """Each operator may be one step off, and what follows it then, too."""
    steps = whole(make(), image(), step=0.06, most=3)
    assert steps[0] == steps[-1] == "Convert" and steps.count("Convert") == 2
    assert set(steps) <= {
        *("Convert", "Copy", "Lookup"),
        *("QuantizedConvolution", "QuantizedProduct", "QuantizedBinary"),
    }


# --- scales at their limits -----------------------------------------------------------------------


def test_a_channel_of_zeros_keeps_its_bias() -> None:
    """Its scale is the observer's least, in which its bias is more than an int32."""
    linear = Linear(8, 16)
    linear.weight[2] = 0
    linear.scales[2] = torch.finfo(torch.float32).eps
    model = Between(linear)
    x = torch.randn(5, 16)
    whole(model, x, step=0.05, most=1)
    assert model(x)[:, 2].abs().min() > 0


def test_a_scale_that_underflows_is_refused_by_name() -> None:
    linear = Linear(8, 16)
    linear.scales[3] = 1e-38
    with pytest.raises(Exception, match=r"too small to compute with.*channel 3.*1e-38"):
        lowered(Between(linear), torch.randn(5, 16))


# --- what is left ---------------------------------------------------------------------------------


def test_weights_alone_stay_with_a_reason() -> None:
    left = left_of(lowered(Linear(8, 16), torch.randn(5, 16)))
    assert any("its weights are quantised and its input is not" in (r or "") for r in left.values())


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
    names = [type(s.operation).__name__ for s in steps_in(edge)]
    assert names.count("Convert") == 4 and "Convolution" in names
