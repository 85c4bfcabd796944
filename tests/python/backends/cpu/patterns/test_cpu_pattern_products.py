"""Products and convolutions of bytes, of rows quantised at run time, and of float32."""

from collections.abc import Callable
from typing import Any

import torch
from expecttest import assert_expected_inline
from pattern_text import after, on_bytes
from quantized_values import COLUMNS, rounded, weights
from torch.fx import Node

from rushlight.backends.cpu.graph.rewrite import Rewriter
from rushlight.backends.cpu.patterns.integers.products import (
    dynamic_product,
    product,
    weight_only_product,
)

aten = torch.ops.aten
quantized = torch.ops.quantized_decomposed
X = torch.ones(2, 4)


def each(pattern: Callable[[Rewriter, Node], Node | None]) -> Callable[[Rewriter], None]:
    """The pattern on every call of a graph on bytes."""

    def on_all(r: Rewriter) -> None:
        for node in list(r.graph.nodes):
            new = pattern(r, node)
            if new is not None:
                r.replace(node, new)
        r.clean()

    return on_bytes(on_all)


def of_bytes(r: Rewriter, node: Node) -> Node | None:
    return product(r, node, node, None)


def test_a_product_of_bytes() -> None:
    """Accumulators start at the bias, 1 / (0.5 * 0.25) = 8, minus 128 times the weights' sum."""
    assert_expected_inline(
        after(
            each(of_bytes),
            lambda x, w, s, z, b: torch.addmm(b, rounded(x), weights(w, s, z)),
            X,
            **COLUMNS,
            b=torch.ones(3),
        ),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-504, -504, -504],
    float32[3] = [0.125, 0.125, 0.125]), None)
return [%2]
""",
    )


def test_weights_with_zero_points_are_not_multiplied() -> None:
    assert_expected_inline(
        after(
            each(of_bytes),
            lambda x, w, s, z: torch.mm(rounded(x), weights(w, s, z)),
            X,
            **{**COLUMNS, "z": torch.ones(3, dtype=torch.int64)},
        ),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
s: float32[3] = [0.25, 0.25, 0.25]
z: int64[3] = [1, 1, 1]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[4, 3] = dequantize_per_channel(w, s, z, 1, -127, 127, int8)
%4: float32[2, 3] = mm(%2, %3)
return [%4]
""",
    )


def convolved(*settings: Any) -> Callable[..., torch.Tensor]:
    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        return aten.convolution(rounded(x), weights(w, s, z, 0), None, *settings)

    return model


KERNELS = {
    "w": torch.ones(3, 2, 3, 1, dtype=torch.int8),
    "s": torch.full((3,), 0.25),
    "z": torch.zeros(3, dtype=torch.int64),
}


def test_a_convolution_of_bytes() -> None:
    """The padding is the zero point, 128."""
    model = convolved([2, 1], [1, 0], [1, 1], False, [0, 0], 1)
    assert_expected_inline(
        after(each(of_bytes), model, torch.ones(1, 2, 4, 4), **KERNELS),
        """\
x: float32[1, 2, 4, 4]
w: int8[3, 2, 3, 1] = constant
%1: uint8[1, 2, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[1, 3, 2, 4] = convolution(%1, w, Sums(int8[3, 2, 3, 1] = constant, int32[3] = [-768,
    -768, -768], float32[3] = [0.125, 0.125, 0.125]), None, Window([3, 1], [2, 1], [1, 0, 1, 0],
    [1, 1]), 1, 128)
return [%2]
""",
    )


def test_a_convolution_of_a_line_is_one_of_an_image_of_one_row() -> None:
    model = convolved([1], [1], [2], False, [0], 1)
    lines = {**KERNELS, "w": torch.ones(3, 2, 3, dtype=torch.int8)}
    assert_expected_inline(
        after(each(of_bytes), model, torch.ones(1, 2, 8), **lines),
        """\
x: float32[1, 2, 8]
w: int8[3, 2, 3] = constant
%1: uint8[1, 2, 8] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 2, 1, 8] = view_copy(%1, [1, 2, 1, 8])
%3: float32[1, 3, 1, 6] = convolution(%2, w, Sums(int8[3, 2, 3] = constant, int32[3] = [-768,
    -768, -768], float32[3] = [0.125, 0.125, 0.125]), None, Window([1, 3], [1, 1], [0, 1, 0, 1],
    [1, 2]), 1, 128)
%4: float32[1, 3, 6] = view_copy(%3, [1, 3, 6])
return [%4]
""",
    )


def test_a_transposed_convolution_stays() -> None:
    model = convolved([1, 1], [0, 0], [1, 1], True, [0, 0], 1)
    assert_expected_inline(
        after(each(of_bytes), model, torch.ones(1, 3, 4, 4), **KERNELS),
        """\
x: float32[1, 3, 4, 4]
w: int8[3, 2, 3, 1] = constant
s: float32[3] = [0.25, 0.25, 0.25]
z: int64[3] = [0, 0, 0]
%1: uint8[1, 3, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[1, 3, 4, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[3, 2, 3, 1] = dequantize_per_channel(w, s, z, 0, -127, 127, int8)
%4: float32[1, 2, 6, 4] = convolution(%2, %3, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1)
return [%4]
""",
    )


def rows(x: torch.Tensor) -> torch.Tensor:
    """Quantised at run time, and dequantised."""
    limits = -128, 127, torch.int8
    scales, zeros = quantized.choose_qparams_per_token_asymmetric(x, torch.int8)
    integers = quantized.quantize_per_token(x, scales, zeros, *limits)
    return quantized.dequantize_per_token(integers, scales, zeros, *limits, torch.float32)


def test_a_product_of_rows_that_are_quantised_at_run_time() -> None:
    assert_expected_inline(
        after(
            each(dynamic_product),
            lambda x, w, s, z, b: torch.addmm(b, rows(x), weights(w, s, z)),
            X,
            **COLUMNS,
            b=torch.ones(3),
        ),
        """\
c0: float32[3] = [1, 1, 1]
x: float32[2, 4]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize_rows(x)
%2: float32[2, 3] = dynamic_product(%1, w, Weights(w, 1, int8[3, 4] = constant, float32[3, 1] =
    [[0.25], [0.25], [0.25]], -127, 127), c0)
return [%2]
""",
    )


def test_other_rows_are_not_quantised() -> None:
    assert_expected_inline(
        after(
            each(dynamic_product), lambda x, w, s, z: torch.mm(x, weights(w, s, z)), X, **COLUMNS
        ),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
s: float32[3] = [0.25, 0.25, 0.25]
z: int64[3] = [0, 0, 0]
%1: float32[4, 3] = dequantize_per_channel(w, s, z, 1, -127, 127, int8)
%2: float32[2, 3] = mm(x, %1)
return [%2]
""",
    )


def test_a_product_of_float32_with_quantised_weights() -> None:
    assert_expected_inline(
        after(
            each(weight_only_product),
            lambda x, w, s, z: torch.mm(x.sin(), weights(w, s, z)),
            X,
            **COLUMNS,
        ),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
%1: float32[2, 4] = sin(x)
%2: float32[2, 3] = weight_only_product(%1, w, Weights(w, 1, int8[3, 4] = constant, float32[3,
    1] = [[0.25], [0.25], [0.25]], -127, 127), None)
return [%2]
""",
    )


def test_rows_that_are_quantised_at_run_time_are_no_float32() -> None:
    assert_expected_inline(
        after(
            each(weight_only_product),
            lambda x, w, s, z: torch.mm(rows(x), weights(w, s, z)),
            X,
            **COLUMNS,
        ),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
s: float32[3] = [0.25, 0.25, 0.25]
z: int64[3] = [0, 0, 0]
%1: (float64[2, 1], int64[2, 1]) = choose_qparams_per_token_asymmetric(x, int8)
%2: float64[2, 1] = getitem(%1, 0)
%3: int64[2, 1] = getitem(%1, 1)
%4: int8[2, 4] = quantize_per_token(x, %2, %3, -128, 127, int8)
%5: float32[2, 4] = dequantize_per_token(%4, %2, %3, -128, 127, int8, float32)
%6: float32[4, 3] = dequantize_per_channel(w, s, z, 1, -127, 127, int8)
%7: float32[2, 3] = mm(%5, %6)
return [%7]
""",
    )
