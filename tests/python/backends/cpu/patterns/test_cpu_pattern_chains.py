"""split_chains and widen: calls after a cat move before it, halves are computed in float32."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after

from rushlight.backends.cpu.patterns.chains import split_chains
from rushlight.backends.cpu.patterns.halves import widen

X = torch.ones(4, 4)


def test_a_chain_behind_a_cat_of_products_goes_to_each() -> None:
    def model(x, y):  # type: ignore[no-untyped-def]
        return torch.cat([torch.mm(x, y), torch.mm(y, x)], 1).relu() * 2.0

    assert_expected_inline(
        after(split_chains, model, X, X),
        """\
c0: float32[] = 2
x: float32[4, 4]
y: float32[4, 4]
%1: float32[4, 4] = mm(x, y)
%2: float32[4, 4] = mm(y, x)
%3: float32[4, 4] = relu(%1)
%4: float32[4, 4] = mul.Tensor(%3, c0)
%5: float32[4, 4] = relu(%2)
%6: float32[4, 4] = mul.Tensor(%5, c0)
%7: float32[4, 8] = cat([%4, %6], 1)
return [%7]
""",
    )


def test_a_cat_that_others_read_stays() -> None:
    def model(x, y):  # type: ignore[no-untyped-def]
        joined = torch.cat([torch.mm(x, y), torch.mm(y, x)], 1)
        return joined, joined.relu()

    assert_expected_inline(
        after(split_chains, model, X, X),
        """\
x: float32[4, 4]
y: float32[4, 4]
%1: float32[4, 4] = mm(x, y)
%2: float32[4, 4] = mm(y, x)
%3: float32[4, 8] = cat([%1, %2], 1)
%4: float32[4, 8] = relu(%3)
return [%3, %4]
""",
    )


def test_halves_are_widened_once_and_narrowed_at_the_end() -> None:
    assert_expected_inline(
        after(widen, lambda x: ((x + x).sin(), x.cos()), X.half()),
        """\
x: float16[4, 4]
%1: float32[4, 4] = convert(x, float32)
%2: float32[4, 4] = add.Tensor(%1, %1)
%3: float32[4, 4] = sin(%2)
%4: float32[4, 4] = cos(%1)
%5: float16[4, 4] = convert(%3, float16)
%6: float16[4, 4] = convert(%4, float16)
return [%5, %6]
""",
    )
