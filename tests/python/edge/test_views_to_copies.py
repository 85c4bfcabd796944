"""views_to_copies: every operator that gives a view becomes the one that copies."""

import torch
from expecttest import assert_expected_inline
from graphs import run
from pass_text import text, traced

from rushlight.edge.passes.views_to_copies import views_to_copies


def test_views_become_copies_of_the_same_arguments() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, second = x.split(2)
        return first.t(), x.select(0, 1), second.unsqueeze(0).expand(3, 2, 3), x.view(12) + 1

    x = torch.randn(4, 3)
    program = traced(model, x)
    views_to_copies(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[4, 3]
%1: (float32[2, 3], float32[2, 3]) = split_copy.Tensor(x, 2)
%2: float32[2, 3] = getitem(%1, 0)
%3: float32[2, 3] = getitem(%1, 1)
%4: float32[3, 2] = t_copy(%2)
%5: float32[3] = select_copy.int(x, 0, 1)
%6: float32[1, 2, 3] = unsqueeze_copy(%3, 0)
%7: float32[3, 2, 3] = expand_copy(%6, [3, 2, 3])
%8: float32[12] = view_copy(x, [12])
%9: float32[12] = add.Tensor(%8, 1)
return [%4, %5, %7, %9]
""",
    )
    for got, expected in zip(run(program, x), model(x), strict=True):
        assert torch.equal(got, expected)
