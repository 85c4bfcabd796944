"""common_subexpression: equal operators on equal arguments are computed once."""

import torch
from expecttest import assert_expected_inline
from graphs import core
from pass_text import text, traced

from rushlight.edge.passes.common_subexpression import common_subexpression


def test_equal_calls_merge_transitively() -> None:
    program = traced(lambda x: torch.exp(x.sin()) * torch.exp(x.sin()), torch.ones(5))
    assert common_subexpression(program.graph) == 2
    assert_expected_inline(
        text(program),
        """\
x: float32[5]
%1: float32[5] = sin(x)
%2: float32[5] = exp(%1)
%3: float32[5] = mul.Tensor(%2, %2)
return [%3]
""",
    )


def test_arguments_that_only_look_equal_keep_calls_apart() -> None:
    program = traced(lambda x: (x * 1, x * 1.0, x * True), torch.ones(3, dtype=torch.int64))
    assert common_subexpression(program.graph) == 0
    assert_expected_inline(
        text(program),
        """\
x: int64[3]
%1: int64[3] = mul.Tensor(x, 1)
%2: float32[3] = mul.Tensor(x, 1.0)
%3: int64[3] = mul.Tensor(x, True)
return [%1, %2, %3]
""",
    )


def test_random_calls_stay_apart() -> None:
    program = core(lambda x: x + torch.rand(3) + torch.rand(3), torch.ones(3))
    assert common_subexpression(program.graph) == 0
