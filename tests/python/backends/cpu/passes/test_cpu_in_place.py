"""add_in_place: a product of bytes stores its sum over a residual that nothing reads later."""

import torch
from expecttest import assert_expected_inline
from payload_text import payload, payload_text
from quantized_values import rounded, weights

X = torch.ones(2, 3)
SQUARE = {
    "w": torch.ones(3, 3, dtype=torch.int8),
    "s": torch.full((3,), 0.25),
    "z": torch.zeros(3, dtype=torch.int64),
}


def product(x, w, s, z):  # type: ignore[no-untyped-def]
    return rounded(torch.mm(x, weights(w, s, z)))


def test_a_sum_takes_the_memory_of_its_residual() -> None:
    """The residual is the first product's result, which the second one reads, too; the third
    product, which reads it last, stores its sum over it."""

    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        residual = product(rounded(x), w, s, z)
        inner = product(residual, w, s, z)
        return rounded(product(inner, w, s, z) + residual)

    assert_expected_inline(
        payload_text(payload(model, X, **SQUARE)),
        """\
v0: float[6] strides [1], input 0
v1: byte[6] strides [1], scratch at 64
v2: byte[2, 3] strides [3, 1], scratch at 64
v3: char[64] strides [1], constant 0
v4: int[16] strides [1], constant 1
v5: float[16] strides [1], constant 2
v6: byte[2, 3] strides [3, 1], scratch at 0
v7: char[64] strides [1], constant 3
v8: int[16] strides [1], constant 4
v9: float[16] strides [1], constant 5
v10: byte[2, 3] strides [3, 1], scratch at 64
v11: char[64] strides [1], constant 6
v12: int[16] strides [1], constant 7
v13: float[16] strides [1], constant 8
v14: byte[6] strides [1], scratch at 0
v15: float[6] strides [1], output 0
v1 = Convert(scale=0.5, zero_point=128) of v0
v6 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v2, v3, v4, v5
v10 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v6, v7, v8, v9
v6 = QuantizedProduct(requantize=Requantize(zero_point=128), residual=QuantizedResidual(value=6,
    sum=QuantizedBinary(a_scale=0.5, a_zero_point=128, b_scale=0.5, b_zero_point=128, scale=0.5,
    requantize=Requantize(zero_point=128)))) of v10, v11, v12, v13
v15 = Convert(scale=0.5, zero_point=128) of v14
scratch: 128 bytes
""",
    )


def test_a_residual_that_is_read_later_is_kept() -> None:
    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        residual = product(rounded(x), w, s, z)
        inner = product(residual, w, s, z)
        total = rounded(product(inner, w, s, z) + residual)
        return product(total, w, s, z), product(residual, w, s, z)

    assert_expected_inline(
        payload_text(payload(model, X, **SQUARE)),
        """\
v0: float[6] strides [1], input 0
v1: byte[6] strides [1], scratch at 64
v2: byte[2, 3] strides [3, 1], scratch at 64
v3: char[64] strides [1], constant 0
v4: int[16] strides [1], constant 1
v5: float[16] strides [1], constant 2
v6: byte[2, 3] strides [3, 1], scratch at 0
v7: char[64] strides [1], constant 3
v8: int[16] strides [1], constant 4
v9: float[16] strides [1], constant 5
v10: byte[2, 3] strides [3, 1], scratch at 64
v11: char[64] strides [1], constant 6
v12: int[16] strides [1], constant 7
v13: float[16] strides [1], constant 8
v14: byte[2, 3] strides [3, 1], scratch at 128
v15: char[64] strides [1], constant 9
v16: int[16] strides [1], constant 10
v17: float[16] strides [1], constant 11
v18: byte[2, 3] strides [3, 1], scratch at 64
v19: byte[6] strides [1], scratch at 64
v20: float[6] strides [1], output 0
v21: char[64] strides [1], constant 12
v22: int[16] strides [1], constant 13
v23: float[16] strides [1], constant 14
v24: byte[2, 3] strides [3, 1], scratch at 64
v25: byte[6] strides [1], scratch at 64
v26: float[6] strides [1], output 1
v1 = Convert(scale=0.5, zero_point=128) of v0
v6 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v2, v3, v4, v5
v10 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v6, v7, v8, v9
v14 = QuantizedProduct(requantize=Requantize(zero_point=128),
    residual=QuantizedResidual(value=6, sum=QuantizedBinary(a_scale=0.5, a_zero_point=128,
    b_scale=0.5, b_zero_point=128, scale=0.5, requantize=Requantize(zero_point=128)))) of v10,
    v11, v12, v13
v18 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v14, v15, v16, v17
v20 = Convert(scale=0.5, zero_point=128) of v19
v24 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v6, v21, v22, v23
v26 = Convert(scale=0.5, zero_point=128) of v25
scratch: 192 bytes
""",
    )


def test_a_residual_that_the_product_multiplies_is_kept() -> None:
    def model(x, w, s, z):  # type: ignore[no-untyped-def]
        residual = product(rounded(x), w, s, z)
        return product(rounded(product(residual, w, s, z) + residual), w, s, z)

    assert_expected_inline(
        payload_text(payload(model, X, **SQUARE)),
        """\
v0: float[6] strides [1], input 0
v1: byte[6] strides [1], scratch at 0
v2: byte[2, 3] strides [3, 1], scratch at 0
v3: char[64] strides [1], constant 0
v4: int[16] strides [1], constant 1
v5: float[16] strides [1], constant 2
v6: byte[2, 3] strides [3, 1], scratch at 64
v7: char[64] strides [1], constant 3
v8: int[16] strides [1], constant 4
v9: float[16] strides [1], constant 5
v10: byte[2, 3] strides [3, 1], scratch at 0
v11: char[64] strides [1], constant 6
v12: int[16] strides [1], constant 7
v13: float[16] strides [1], constant 8
v14: byte[2, 3] strides [3, 1], scratch at 64
v15: byte[6] strides [1], scratch at 64
v16: float[6] strides [1], output 0
v1 = Convert(scale=0.5, zero_point=128) of v0
v6 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v2, v3, v4, v5
v10 = QuantizedProduct(requantize=Requantize(zero_point=128),
    residual=QuantizedResidual(value=6, sum=QuantizedBinary(a_scale=0.5, a_zero_point=128,
    b_scale=0.5, b_zero_point=128, scale=0.5, requantize=Requantize(zero_point=128)))) of v6,
    v7, v8, v9
v14 = QuantizedProduct(requantize=Requantize(zero_point=128)) of v10, v11, v12, v13
v16 = Convert(scale=0.5, zero_point=128) of v15
scratch: 128 bytes
""",
    )
