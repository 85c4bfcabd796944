"""simplify_views: views that only split and join dimensions become one reshape, or vanish."""

import torch
from expecttest import assert_expected_inline
from pattern_text import after

from rushlight.backends.cpu.patterns.views import simplify_views

X = torch.ones(2, 3)


def test_reshapes_in_a_row_become_one() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(0).view(3, 2).view(6, 1, 1).permute(1, 0, 2) + 1.0

    assert_expected_inline(
        after(simplify_views, model, X),
        """\
c0: float32[] = 1
x: float32[2, 3]
%1: float32[1, 6, 1] = view_copy(x, [1, 6, 1])
%2: float32[1, 6, 1] = add.Tensor(%1, c0)
return [%2]
""",
    )


def test_reshapes_that_end_where_they_began_go() -> None:
    assert_expected_inline(
        after(simplify_views, lambda x: x.view(6).view(3, 2).view(2, 3).sin(), X),
        """\
x: float32[2, 3]
%1: float32[2, 3] = sin(x)
return [%1]
""",
    )


def test_a_reshape_that_others_read_stays() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.view(6)
        return y.sin(), y.view(3, 2).cos()

    assert_expected_inline(
        after(simplify_views, model, X),
        """\
x: float32[2, 3]
%1: float32[6] = view_copy(x, [6])
%2: float32[6] = sin(%1)
%3: float32[3, 2] = view_copy(%1, [3, 2])
%4: float32[3, 2] = cos(%3)
return [%2, %4]
""",
    )


def test_a_transposition_stays() -> None:
    assert_expected_inline(
        after(simplify_views, lambda x: torch.permute_copy(x, (1, 0)).view(6), X),
        """\
x: float32[2, 3]
%1: float32[3, 2] = permute_copy(x, [1, 0])
%2: float32[6] = view_copy(%1, [6])
return [%2]
""",
    )


def test_dynamic_sizes() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.unsqueeze(1).squeeze(1).sin()

    assert_expected_inline(
        after(simplify_views, model, X, dynamic=True),
        """\
x: float32[s0, s1]
%1: float32[s0, s1] = sin(x)
return [%1]
""",
    )
