"""fuse_quantized: calls between dequantising and quantising run on integers."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after
from quantized_values import COLUMNS, rounded, weights

from rushlight.backends.cpu.patterns.integers.fuse import fuse_quantized

X = torch.ones(2, 4)


def product(x, w, s, z):  # type: ignore[no-untyped-def]
    return torch.mm(rounded(x), weights(w, s, z))


def test_a_sum_of_integers() -> None:
    assert_expected_inline(
        after(fuse_quantized, lambda x, y: rounded(rounded(x) + rounded(y), 0.25), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = binary(%1, %2, Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.5,
    128, 0, 255), Quantization(0.25, 128, 0, 255)))
%4: float32[2, 4] = dequantize(%3, Quantization(0.25, 128, 0, 255))
return [%4]
""",
    )


def test_a_product_with_weights_for_each_column() -> None:
    assert_expected_inline(
        after(fuse_quantized, product, X, **COLUMNS),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.125, 0.125, 0.125]), None)
return [%2]
""",
    )


def test_a_product_whose_result_is_quantised() -> None:
    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        return rounded(product(x, w, s, z).relu(), 0.125)

    assert_expected_inline(
        after(fuse_quantized, model, X, **COLUMNS),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [1, 1, 1]), Quantization(0.125, 128, 128, 255))
%3: float32[2, 3] = dequantize(%2, Quantization(0.125, 128, 0, 255))
return [%3]
""",
    )


def test_movement_of_what_is_quantised_afterwards_moves_integers() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        return rounded(torch.permute_copy(rounded(x), (1, 0))).view(8)

    assert_expected_inline(
        after(fuse_quantized, model, X),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[4, 2] = permute_copy(%1, [1, 0])
%3: uint8[8] = view_copy(%2, [8])
%4: float32[8] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )
