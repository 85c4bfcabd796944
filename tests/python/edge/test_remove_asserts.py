"""remove_asserts: removes assertions that are checked elsewhere, and copies that nothing writes."""

import torch
from expecttest import assert_expected_inline
from pass_text import text, traced

from rushlight.edge.passes.remove_asserts import remove_asserts

aten = torch.ops.aten


def asserting(x: torch.Tensor) -> torch.Tensor:
    aten._assert_async.msg((x > 0).all(), "positive")
    aten._assert_tensor_metadata.default(x, dtype=torch.float32)
    return aten.alias.default(aten.lift_fresh_copy.default(x)) + 1.0


def test_what_is_settled_goes_and_what_values_decide_stays() -> None:
    program = traced(asserting, torch.ones(2))
    remove_asserts(program.graph)
    assert_expected_inline(
        text(program),
        """\
x: float32[2]
%1: bool[2] = gt.Scalar(x, 0)
%2: bool[] = all(%1)
%3: NoneType = _assert_async.msg(%2, 'positive')
%4: float32[2] = add.Tensor(x, 1.0)
return [%4]
""",
    )


def test_all_go_where_none_are_wanted() -> None:
    program = traced(asserting, torch.ones(2))
    remove_asserts(program.graph, keep=False)
    assert_expected_inline(
        text(program),
        """\
x: float32[2]
%1: bool[2] = gt.Scalar(x, 0)
%2: bool[] = all(%1)
%3: float32[2] = add.Tensor(x, 1.0)
return [%3]
""",
    )
