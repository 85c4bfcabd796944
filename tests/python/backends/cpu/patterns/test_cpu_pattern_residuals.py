"""fuse_residuals: products and convolutions of bytes add the residual themselves."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after, fuse_results, on_bytes
from quantized_values import COLUMNS, rounded, weights

from rushlight.backends.cpu.patterns.integers.residuals import fuse_residuals

X, Y = torch.ones(2, 4), torch.ones(2, 3)


def fused(model, *args, constants=COLUMNS):  # type: ignore[no-untyped-def]
    return after(on_bytes(fuse_results, fuse_residuals), model, *args, **constants)


def product(x, w, s, z):  # type: ignore[no-untyped-def]
    return rounded(torch.mm(rounded(x), weights(w, s, z)))


def test_a_product_adds_the_other_operand() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(product(x, w, s, z) + rounded(y, 0.25), 1.0), X, Y),
        """\
x: float32[2, 4]
y: float32[2, 3]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = quantize(y, Quantization(0.25, 128, 0, 255))
%3: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255), residual=%2,
    pair=Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.25, 128, 0, 255),
    Quantization(1.0, 128, 0, 255)))
%4: float32[2, 3] = dequantize(%3, Quantization(1.0, 128, 0, 255))
return [%4]
""",
    )


def test_a_product_that_comes_second_is_the_first_operand_of_the_pair() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(rounded(y, 0.25) + product(x, w, s, z), 1.0), X, Y),
        """\
x: float32[2, 4]
y: float32[2, 3]
w: int8[4, 3] = constant
%1: uint8[2, 3] = quantize(y, Quantization(0.25, 128, 0, 255))
%2: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 3] = product(%2, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255), residual=%1,
    pair=Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.25, 128, 0, 255),
    Quantization(1.0, 128, 0, 255)))
%4: float32[2, 3] = dequantize(%3, Quantization(1.0, 128, 0, 255))
return [%4]
""",
    )


def test_only_a_first_operand_is_subtracted_from() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(rounded(y, 0.25) - product(x, w, s, z), 1.0), X, Y),
        """\
x: float32[2, 4]
y: float32[2, 3]
w: int8[4, 3] = constant
%1: uint8[2, 3] = quantize(y, Quantization(0.25, 128, 0, 255))
%2: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 3] = product(%2, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = binary(%1, %3, Pair(SUBTRACT, Quantization(0.25, 128, 0, 255),
    Quantization(0.5, 128, 0, 255), Quantization(1.0, 128, 0, 255)))
%5: float32[2, 3] = dequantize(%4, Quantization(1.0, 128, 0, 255))
return [%5]
""",
    )


def test_of_two_products_the_last_one_adds() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(product(x, w, s, z) + product(y, w, s, z)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = product(%3, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255), residual=%2,
    pair=Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255),
    Quantization(0.5, 128, 0, 255)))
%5: float32[2, 3] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )


def test_a_product_that_others_read_adds_nothing() -> None:
    def model(x, y, w, s, z):  # type: ignore[no-untyped-def]
        made = product(x, w, s, z)
        return rounded(made + rounded(y)), made

    assert_expected_inline(
        fused(model, X, Y),
        """\
x: float32[2, 4]
y: float32[2, 3]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255))
%3: float32[2, 3] = dequantize(%2, Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = quantize(y, Quantization(0.5, 128, 0, 255))
%5: uint8[2, 3] = binary(%2, %4, Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.5,
    128, 0, 255), Quantization(0.5, 128, 0, 255)))
%6: float32[2, 3] = dequantize(%5, Quantization(0.5, 128, 0, 255))
return [%6, %3]
""",
    )


def test_a_residual_that_is_broadcast_is_added_afterwards() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(product(x, w, s, z) + rounded(y)), X, torch.ones(1, 3)),
        """\
x: float32[2, 4]
y: float32[1, 3]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255))
%3: uint8[1, 3] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = binary(%2, %3, Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.5,
    128, 0, 255), Quantization(0.5, 128, 0, 255)))
%5: float32[2, 3] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )


def test_a_product_is_not_multiplied() -> None:
    assert_expected_inline(
        fused(lambda x, y, w, s, z: rounded(product(x, w, s, z) * rounded(y)), X, Y),
        """\
x: float32[2, 4]
y: float32[2, 3]
w: int8[4, 3] = constant
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 3] = product(%1, w, Sums(int8[3, 4] = constant, int32[3] = [-512, -512, -512],
    float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255))
%3: uint8[2, 3] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = binary(%2, %3, Pair(MULTIPLY, Quantization(0.5, 128, 0, 255),
    Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255)))
%5: float32[2, 3] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )


def line(x, w, s, z):  # type: ignore[no-untyped-def]
    settings = None, [1], [1], [1], False, [0], 1
    return rounded(torch.ops.aten.convolution(rounded(x), weights(w, s, z, 0), *settings))


def test_the_residual_of_a_line_is_an_image_of_one_row() -> None:
    kernels = {**COLUMNS, "w": torch.ones(3, 2, 3, dtype=torch.int8)}
    assert_expected_inline(
        fused(
            lambda x, y, w, s, z: rounded(line(x, w, s, z) + rounded(y)),
            torch.ones(1, 2, 8),
            torch.ones(1, 3, 8),
            constants=kernels,
        ),
        """\
x: float32[1, 2, 8]
y: float32[1, 3, 8]
w: int8[3, 2, 3] = constant
%1: uint8[1, 2, 8] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 2, 1, 8] = view_copy(%1, [1, 2, 1, 8])
%3: uint8[1, 3, 8] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: uint8[1, 3, 1, 8] = view_copy(%3, [1, 3, 1, 8])
%5: uint8[1, 3, 1, 8] = convolution(%2, w, Sums(int8[3, 2, 3] = constant, int32[3] = [-768,
    -768, -768], float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0, 255), Window([1,
    3], [1, 1], [0, 1, 0, 1], [1, 1]), 1, 128, residual=%4, pair=Pair(ADD, Quantization(0.5,
    128, 0, 255), Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255)))
%6: uint8[1, 3, 8] = view_copy(%5, [1, 3, 8])
%7: float32[1, 3, 8] = dequantize(%6, Quantization(0.5, 128, 0, 255))
return [%7]
""",
    )


def test_a_convolution_of_each_channel_adds_nothing() -> None:
    def model(x, y, w, s, z):  # type: ignore[no-untyped-def]
        settings = None, [1, 1], [0, 0], [1, 1], False, [0, 0], 3
        made = torch.ops.aten.convolution(rounded(x), weights(w, s, z, 0), *settings)
        return rounded(rounded(made) + rounded(y))

    kernels = {**COLUMNS, "w": torch.ones(3, 1, 1, 1, dtype=torch.int8)}
    image = torch.ones(1, 3, 2, 2)
    assert_expected_inline(
        fused(model, image, image, constants=kernels),
        """\
x: float32[1, 3, 2, 2]
y: float32[1, 3, 2, 2]
w: int8[3, 1, 1, 1] = [[[[1]]], [[[1]]], [[[1]]]]
%1: uint8[1, 3, 2, 2] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 3, 2, 2] = convolution(%1, w, Sums(int8[3, 1, 1, 1] = [[[[1]]], [[[1]]], [[[1]]]],
    int32[3] = [-128, -128, -128], float32[3] = [0.25, 0.25, 0.25]), Quantization(0.5, 128, 0,
    255), Window([1, 1], [1, 1], [0, 0, 0, 0], [1, 1]), 3, 128)
%3: uint8[1, 3, 2, 2] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: uint8[1, 3, 2, 2] = binary(%2, %3, Pair(ADD, Quantization(0.5, 128, 0, 255),
    Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255)))
%5: float32[1, 3, 2, 2] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )
