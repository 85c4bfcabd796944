"""The builder: products with what follows them, views as strides, reductions between programs."""

import torch
from expecttest import assert_expected_inline
from payload_text import payload, payload_text

X = torch.ones(2, 3)


def test_what_follows_a_product_is_its_epilogue() -> None:
    graph = payload(lambda x, w: torch.relu(torch.mm(x, w)), X, w=torch.ones(3, 4))
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[2, 3] strides [3, 1], input 0
v1: float[48] strides [1], constant 0
v2: float[2, 4] strides [4, 1], output 0
v2 = Product(epilogue=Epilogue(clamped=True, high=inf)) of v0, v1, none
scratch: 0 bytes
""",
    )


def test_other_functions_are_its_tile_program() -> None:
    graph = payload(
        lambda x, w, y: torch.mm(x, w).sin() * y, X, w=torch.ones(3, 4), y=torch.ones(4)
    )
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[2, 4] strides [4, 1], output 0
v1: float[2, 4] strides [0, 1], constant 1
v2: float[2, 3] strides [3, 1], input 0
v3: float[48] strides [1], constant 0
v0 = Product(epilogue=Epilogue()) of v2, v3, none
    r0 = v0
    r0 = SIN(r0)
    r1 = v1
    r1 = MUL(r0, r1)
    v0 = r1
scratch: 0 bytes
""",
    )


def test_a_transposition_that_is_returned_is_a_copy() -> None:
    graph = payload(lambda x: torch.permute_copy(x, (1, 0)) + 1.0, X)
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[6] strides [1], input 0
v1: float[6] strides [1], scratch at 0
v2: float[3, 2] strides [1, 3], scratch at 0
v3: float[3, 2] strides [2, 1], output 0
Elementwise()
    r0 = v0
    r0 = ADD_VALUE(r0, 1)
    v1 = r0
v3 = Copy() of v2
scratch: 64 bytes
""",
    )


def test_a_reduction_stands_between_two_programs() -> None:
    graph = payload(lambda x: (x * x).sum(1, keepdim=True).sqrt() + x, X)
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[6] strides [1], input 0
v1: float[6] strides [1], scratch at 64
v2: float[2, 3] strides [3, 1], scratch at 64
v3: float[2] strides [1], scratch at 0
v4: float[2] strides [1], scratch at 64
v5: float[2, 3] strides [1, 0], scratch at 64
v6: float[2, 3] strides [3, 1], input 0
v7: float[2, 3] strides [3, 1], output 0
Elementwise()
    r0 = v0
    r0 = MUL(r0, r0)
    v1 = r0
v3 = Reduction(first=1, last=2) of v2
Elementwise()
    r0 = v3
    r0 = SQRT(r0)
    v4 = r0
Elementwise()
    r0 = v5
    r1 = v6
    r1 = ADD(r0, r1)
    v7 = r1
scratch: 128 bytes
""",
    )


def test_scratch_memory_is_used_again() -> None:
    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.mm(torch.mm(torch.mm(torch.mm(x, w), w), w), w)

    graph = payload(model, torch.ones(2, 3), w=torch.ones(3, 3))
    assert_expected_inline(
        payload_text(graph),
        """\
v0: float[2, 3] strides [3, 1], input 0
v1: float[48] strides [1], constant 0
v2: float[2, 3] strides [3, 1], scratch at 64
v3: float[2, 3] strides [3, 1], scratch at 0
v4: float[2, 3] strides [3, 1], scratch at 64
v5: float[2, 3] strides [3, 1], output 0
v2 = Product() of v0, v1, none
v3 = Product() of v2, v1, none
v4 = Product() of v3, v1, none
v5 = Product() of v4, v1, none
scratch: 128 bytes
""",
    )
