"""fuse_result: what computes a quantised result becomes one call on bytes."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after, fuse_results, on_bytes
from quantized_values import COLUMNS, rounded, weights

X = torch.ones(2, 4)
IMAGE = torch.ones(1, 2, 4, 4)
aten = torch.ops.aten
fused = on_bytes(fuse_results)


def test_a_function_of_one_value_is_a_table() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(rounded(x).sigmoid() * 2.0, 0.25), X),
        """\
c0: uint8[256] = constant
c1: float32[] = 2
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = lookup(%1, c0)
%3: float32[2, 4] = dequantize(%2, Quantization(0.25, 128, 0, 255))
return [%3]
""",
    )


def test_a_table_of_a_table_is_one() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(rounded(rounded(x).sin()).cos()), X),
        """\
c0: uint8[256] = constant
c1: uint8[256] = constant
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = lookup(%1, c0)
%3: float32[2, 4] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3]
""",
    )


def test_a_function_of_two_values_is_no_table() -> None:
    assert_expected_inline(
        after(fused, lambda x, y: rounded(rounded(x).sin() + rounded(y)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[2, 4] = sin(%2)
%4: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%5: float32[2, 4] = dequantize(%4, Quantization(0.5, 128, 0, 255))
%6: float32[2, 4] = add.Tensor(%3, %5)
%7: uint8[2, 4] = quantize(%6, Quantization(0.5, 128, 0, 255))
%8: float32[2, 4] = dequantize(%7, Quantization(0.5, 128, 0, 255))
return [%8]
""",
    )


def test_what_changes_no_byte_is_left_out() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(rounded(x)), X),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
return [%2]
""",
    )


def test_a_clamp_of_a_sum_becomes_its_limits() -> None:
    """0 and 6 are the bytes 128 and 140."""
    assert_expected_inline(
        after(fused, lambda x, y: rounded((rounded(x) + rounded(y)).clamp(0, 6)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = binary(%1, %2, Pair(ADD, Quantization(0.5, 128, 0, 255), Quantization(0.5,
    128, 0, 255), Quantization(0.5, 128, 128, 140)))
%4: float32[2, 4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_a_clamp_of_bytes_narrows_the_call_before_it() -> None:
    assert_expected_inline(
        after(fused, lambda x, y: rounded(rounded(rounded(x) - rounded(y)).relu()), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = binary(%1, %2, Pair(SUBTRACT, Quantization(0.5, 128, 0, 255),
    Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 128, 255)))
%4: float32[2, 4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_a_negative_factor_makes_a_sum_a_difference() -> None:
    """The second operand's scale is 3 * 0.5."""
    assert_expected_inline(
        after(fused, lambda x, y: rounded(torch.add(rounded(x), rounded(y), alpha=-3)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = binary(%1, %2, Pair(SUBTRACT, Quantization(0.5, 128, 0, 255),
    Quantization(1.5, 128, 0, 255), Quantization(0.5, 128, 0, 255)))
%4: float32[2, 4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_scales_that_are_too_far_apart_stay_in_float32() -> None:
    assert_expected_inline(
        after(fused, lambda x, y: rounded(rounded(x, 1024.0) + rounded(y)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(1024.0, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(1024.0, 128, 0, 255))
%3: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%4: float32[2, 4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
%5: float32[2, 4] = add.Tensor(%2, %4)
%6: uint8[2, 4] = quantize(%5, Quantization(0.5, 128, 0, 255))
%7: float32[2, 4] = dequantize(%6, Quantization(0.5, 128, 0, 255))
return [%7]
""",
    )


def test_the_result_of_a_product_is_bytes() -> None:
    """Its multipliers are 0.5 * 0.25 / 0.125, and its least byte is the zero point."""
    assert_expected_inline(
        after(
            fused,
            lambda x, w, s, z: rounded(torch.mm(rounded(x), weights(w, s, z)).relu(), 0.125),
            X,
            **COLUMNS,
        ),
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


def test_a_product_that_others_read_stays() -> None:
    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        y = torch.mm(rounded(x), weights(w, s, z))
        return rounded(y), y

    assert_expected_inline(
        after(fused, model, X, **COLUMNS),
        """\
x: float32[2, 4]
w: int8[4, 3] = constant
s: float32[3] = [0.25, 0.25, 0.25]
z: int64[3] = [0, 0, 0]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[4, 3] = dequantize_per_channel(w, s, z, 1, -127, 127, int8)
%4: float32[2, 3] = mm(%2, %3)
%5: uint8[2, 3] = quantize(%4, Quantization(0.5, 128, 0, 255))
%6: float32[2, 3] = dequantize(%5, Quantization(0.5, 128, 0, 255))
return [%6, %4]
""",
    )


def test_an_average_over_windows() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(aten.avg_pool2d(rounded(x), [2, 2], [1, 1])), IMAGE),
        """\
x: float32[1, 2, 4, 4]
%1: uint8[1, 2, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 2, 3, 3] = pool(%1, Pool(Window([2, 2], [1, 1], [0, 0, 0, 0], [1, 1]),
    Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255), True, 0))
%3: float32[1, 2, 3, 3] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3]
""",
    )


def test_a_mean_of_images_is_an_average_over_one_window() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(rounded(x).mean([2, 3])), IMAGE),
        """\
x: float32[1, 2, 4, 4]
%1: uint8[1, 2, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 2, 1, 1] = pool(%1, Pool(Window([4, 4], [1, 1], [0, 0, 0, 0], [1, 1]),
    Quantization(0.5, 128, 0, 255), Quantization(0.5, 128, 0, 255), False, 0))
%3: uint8[1, 2] = view_copy(%2, [1, 2])
%4: float32[1, 2] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_a_mean_of_rows_stays() -> None:
    assert_expected_inline(
        after(fused, lambda x: rounded(rounded(x).mean([3])), IMAGE),
        """\
x: float32[1, 2, 4, 4]
%1: uint8[1, 2, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[1, 2, 4, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[1, 2, 4] = mean.dim(%2, [3])
%4: uint8[1, 2, 4] = quantize(%3, Quantization(0.5, 128, 0, 255))
%5: float32[1, 2, 4] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )
