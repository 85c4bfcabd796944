"""fuse_attention: two products around a softmax become one operator."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after

from rushlight.backends.cpu.patterns.attention import fuse_attention

Q = torch.ones(2, 5, 4)


def products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q, k.permute(0, 2, 1)) * 0.5
    return torch.bmm(torch._softmax(scores, -1, False), v)


def test_scaled_products_around_a_softmax() -> None:
    assert_expected_inline(
        after(fuse_attention, products, Q, Q, Q),
        """\
c0: float32[] = 0.5
q: float32[2, 5, 4]
k: float32[2, 5, 4]
v: float32[2, 5, 4]
%1: float32[2, 4, 5] = permute_copy(k, [0, 2, 1])
%2: float32[1, 2, 5, 4] = view_copy(q, [1, 2, 5, 4])
%3: float32[1, 2, 4, 5] = view_copy(%1, [1, 2, 4, 5])
%4: float32[1, 2, 5, 4] = view_copy(v, [1, 2, 5, 4])
%5: float32[1, 2, 5, 4] = permute_copy(%3, [0, 1, 3, 2])
%6: float32[1, 2, 5, 4] = scaled_dot_product_attention(%2, %5, %4, None, scale=0.5,
    enable_gqa=False)
%7: float32[2, 5, 4] = view_copy(%6, [2, 5, 4])
return [%7]
""",
    )


def test_a_mask_that_is_added() -> None:
    def model(q, k, v, mask):  # type: ignore[no-untyped-def]
        scores = torch.bmm(q, k.permute(0, 2, 1)) + mask
        return torch.bmm(torch._softmax(scores, -1, False), v)

    assert_expected_inline(
        after(fuse_attention, model, Q, Q, Q, torch.zeros(5, 5)),
        """\
q: float32[2, 5, 4]
k: float32[2, 5, 4]
v: float32[2, 5, 4]
mask: float32[5, 5]
%1: float32[2, 4, 5] = permute_copy(k, [0, 2, 1])
%2: float32[1, 2, 5, 4] = view_copy(q, [1, 2, 5, 4])
%3: float32[1, 2, 4, 5] = view_copy(%1, [1, 2, 4, 5])
%4: float32[1, 2, 5, 4] = view_copy(v, [1, 2, 5, 4])
%5: float32[1, 2, 5, 4] = permute_copy(%3, [0, 1, 3, 2])
%6: float32[1, 2, 5, 4] = scaled_dot_product_attention(%2, %5, %4, mask, scale=1.0,
    enable_gqa=False)
%7: float32[2, 5, 4] = view_copy(%6, [2, 5, 4])
return [%7]
""",
    )


def test_weights_that_others_read_stay() -> None:
    def model(q, k, v):  # type: ignore[no-untyped-def]
        weights = torch._softmax(torch.bmm(q, k.permute(0, 2, 1)), -1, False)
        return torch.bmm(weights, v), weights

    assert "scaled_dot_product_attention" not in after(fuse_attention, model, Q, Q, Q)


def test_a_softmax_over_other_rows_stays() -> None:
    def model(q, k, v):  # type: ignore[no-untyped-def]
        weights = torch._softmax(torch.bmm(q, k.permute(0, 2, 1)), 1, False)
        return torch.bmm(weights, v)

    assert "scaled_dot_product_attention" not in after(fuse_attention, model, Q, Q, Q)
