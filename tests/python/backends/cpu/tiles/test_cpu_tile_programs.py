"""Clusters of elementwise calls and the tile programs that are assembled of them."""

import torch
from expecttest import assert_expected_inline
from payload_text import payload, payload_text

X, ROW = torch.ones(2, 3), torch.ones(3)


def test_elementwise_calls_are_one_program() -> None:
    graph = payload(lambda x, y: torch.relu(x * 2.0 + y) - x, X, X)
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[6] strides [1], input 0
v1: float[6] strides [1], input 1
v2: float[6] strides [1], output 0
Elementwise()
    r0 = v0
    r1 = MUL_VALUE(r0, 2)
    r2 = v1
    r2 = ADD(r1, r2)
    r2 = RELU(r2)
    r0 = SUB(r2, r0)
    v2 = r0
scratch: 0 bytes
""",
    )


def test_a_row_is_read_again_for_every_row() -> None:
    graph = payload(lambda x, row: x + row, X, row=ROW)
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[2, 3] strides [3, 1], input 0
v1: float[2, 3] strides [0, 1], constant 0
v2: float[2, 3] strides [3, 1], output 0
Elementwise()
    r0 = v0
    r1 = v1
    r1 = ADD(r0, r1)
    v2 = r1
scratch: 0 bytes
""",
    )


def test_activations_that_are_spelled_out_are_one_instruction() -> None:
    spelled = payload_text(payload(lambda x: x / (1 + torch.exp(-x)), X))
    assert spelled == payload_text(payload(lambda x: x * torch.sigmoid(x), X))
    assert_expected_inline(
        spelled,
        """\
v0: float[6] strides [1], input 0
v1: float[6] strides [1], output 0
Elementwise()
    r0 = v0
    r0 = SILU(r0)
    v1 = r0
scratch: 0 bytes
""",
    )


def test_a_value_that_is_returned_and_read_is_computed_once() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sin()
        return y, y * y

    assert_expected_inline(
        payload_text(payload(model, X)),
        """\
v0: float[6] strides [1], input 0
v1: float[6] strides [1], output 0
v2: float[6] strides [1], output 1
Elementwise()
    r0 = v0
    r0 = SIN(r0)
    v1 = r0
Elementwise()
    r0 = v1
    r0 = MUL(r0, r0)
    v2 = r0
scratch: 0 bytes
""",
    )
