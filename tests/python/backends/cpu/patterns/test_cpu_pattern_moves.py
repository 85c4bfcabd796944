"""quantize_early and dequantize_late: calls that only move elements move bytes."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after, on_bytes
from quantized_values import rounded

from rushlight.backends.cpu.patterns.integers.moves import dequantize_late, quantize_early

X = torch.ones(2, 4)
IMAGE = torch.ones(1, 2, 4, 4)


def test_quantising_comes_before_a_move() -> None:
    assert_expected_inline(
        after(on_bytes(quantize_early), lambda x: rounded(torch.permute_copy(x.sin(), (1, 0))), X),
        """\
x: float32[2, 4]
%1: float32[2, 4] = sin(x)
%2: uint8[2, 4] = quantize(%1, Quantization(0.5, 128, 0, 255))
%3: uint8[4, 2] = permute_copy(%2, [1, 0])
%4: float32[4, 2] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_quantising_comes_before_several_moves() -> None:
    assert_expected_inline(
        after(
            on_bytes(quantize_early),
            lambda x: rounded(torch.view_copy(torch.permute_copy(x.sin(), (1, 0)), [8])),
            X,
        ),
        """\
x: float32[2, 4]
%1: float32[2, 4] = sin(x)
%2: uint8[2, 4] = quantize(%1, Quantization(0.5, 128, 0, 255))
%3: uint8[4, 2] = permute_copy(%2, [1, 0])
%4: uint8[8] = view_copy(%3, [8])
%5: float32[8] = dequantize(%4, Quantization(0.5, 128, 0, 255))
return [%5]
""",
    )


def test_quantising_comes_before_a_part_is_taken() -> None:
    assert_expected_inline(
        after(on_bytes(quantize_early), lambda x: rounded(torch.select_copy(x.sin(), 0, 1)), X),
        """\
x: float32[2, 4]
%1: float32[2, 4] = sin(x)
%2: uint8[2, 4] = quantize(%1, Quantization(0.5, 128, 0, 255))
%3: uint8[4] = select_copy.int(%2, 0, 1)
%4: float32[4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_a_part_of_a_value_that_others_read_is_quantised_afterwards() -> None:
    """Else the whole value would be quantised for a part of it."""

    def model(x):  # type: ignore[no-untyped-def]
        y = x.sin()
        return rounded(torch.select_copy(y, 0, 1)), y

    assert_expected_inline(
        after(on_bytes(quantize_early), model, X),
        """\
x: float32[2, 4]
%1: float32[2, 4] = sin(x)
%2: float32[4] = select_copy.int(%1, 0, 1)
%3: uint8[4] = quantize(%2, Quantization(0.5, 128, 0, 255))
%4: float32[4] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4, %1]
""",
    )


def test_each_value_that_is_concatenated_is_quantised_once() -> None:
    assert_expected_inline(
        after(on_bytes(quantize_early), lambda x, y: rounded(torch.cat([x, y, x], 1)), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 12] = cat([%1, %2, %1], 1)
%4: float32[2, 12] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_padding_becomes_the_byte_of_its_value() -> None:
    """2.0 at a scale of 0.5 is 4 above the zero point of 128."""
    assert_expected_inline(
        after(
            on_bytes(quantize_early),
            lambda x: rounded(torch.constant_pad_nd(x, [1, 0], 2.0)),
            X,
        ),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 5] = constant_pad_nd(%1, [1, 0], 132)
%3: float32[2, 5] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3]
""",
    )


def test_a_maximum_over_windows_is_one_of_bytes() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        greatest, _ = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [1, 1], [1, 0])
        return rounded(greatest)

    assert_expected_inline(
        after(on_bytes(quantize_early), model, IMAGE),
        """\
x: float32[1, 2, 4, 4]
%1: uint8[1, 2, 4, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[1, 2, 5, 3] = pool(%1, Pool(Window([2, 2], [1, 1], [1, 0, 1, 0], [1, 1]), None, None,
    False, 0))
%3: float32[1, 2, 5, 3] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3]
""",
    )


def test_a_value_that_others_read_is_moved_in_float32() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        moved = torch.permute_copy(x, (1, 0))
        return rounded(moved), moved

    assert_expected_inline(
        after(on_bytes(quantize_early), model, X),
        """\
x: float32[2, 4]
%1: float32[4, 2] = permute_copy(x, [1, 0])
%2: uint8[4, 2] = quantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[4, 2] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3, %1]
""",
    )


def test_dequantising_comes_after_each_move() -> None:
    assert_expected_inline(
        after(
            on_bytes(dequantize_late),
            lambda x: torch.permute_copy(rounded(x), (1, 0)).view(8).sin(),
            X,
        ),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[4, 2] = permute_copy(%1, [1, 0])
%3: uint8[8] = view_copy(%2, [8])
%4: float32[8] = dequantize(%3, Quantization(0.5, 128, 0, 255))
%5: float32[8] = sin(%4)
return [%5]
""",
    )


def test_values_of_one_scale_are_concatenated_as_bytes() -> None:
    assert_expected_inline(
        after(on_bytes(dequantize_late), lambda x, y: torch.cat([rounded(x), rounded(y)], 1), X, X),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 4] = quantize(y, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 8] = cat([%1, %2], 1)
%4: float32[2, 8] = dequantize(%3, Quantization(0.5, 128, 0, 255))
return [%4]
""",
    )


def test_values_of_two_scales_are_concatenated_in_float32() -> None:
    assert_expected_inline(
        after(
            on_bytes(dequantize_late),
            lambda x, y: torch.cat([rounded(x), rounded(y, 0.25)], 1),
            X,
            X,
        ),
        """\
x: float32[2, 4]
y: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: uint8[2, 4] = quantize(y, Quantization(0.25, 128, 0, 255))
%4: float32[2, 4] = dequantize(%3, Quantization(0.25, 128, 0, 255))
%5: float32[2, 8] = cat([%2, %4], 1)
return [%5]
""",
    )


def test_zeros_around_bytes_are_their_zero_point() -> None:
    assert_expected_inline(
        after(
            on_bytes(dequantize_late),
            lambda x: (torch.constant_pad_nd(rounded(x), [1, 0], 0.0), x),
            X,
        ),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 5] = constant_pad_nd(%1, [1, 0], 128)
%3: float32[2, 5] = dequantize(%2, Quantization(0.5, 128, 0, 255))
return [%3, x]
""",
    )


def test_other_padding_is_done_in_float32() -> None:
    """The bytes may not have that number."""
    assert_expected_inline(
        after(
            on_bytes(dequantize_late),
            lambda x: torch.constant_pad_nd(rounded(x), [1, 0], 2.0),
            X,
        ),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: float32[2, 4] = dequantize(%1, Quantization(0.5, 128, 0, 255))
%3: float32[2, 5] = constant_pad_nd(%2, [1, 0], 2.0)
return [%3]
""",
    )


def test_a_split_becomes_slices() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        left, right = torch.split_with_sizes_copy(rounded(x), [1, 3], 1)
        return left.sin(), right

    assert_expected_inline(
        after(on_bytes(dequantize_late), model, X),
        """\
x: float32[2, 4]
%1: uint8[2, 4] = quantize(x, Quantization(0.5, 128, 0, 255))
%2: uint8[2, 1] = slice_copy.Tensor(%1, 1, 0, 1)
%3: float32[2, 1] = dequantize(%2, Quantization(0.5, 128, 0, 255))
%4: uint8[2, 3] = slice_copy.Tensor(%1, 1, 1, 4)
%5: float32[2, 3] = dequantize(%4, Quantization(0.5, 128, 0, 255))
%6: float32[2, 1] = sin(%3)
return [%6, %5]
""",
    )
