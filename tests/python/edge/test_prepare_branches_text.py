"""prepare_branches: tensors of branches become operands, and results that are inputs copies."""

from collections.abc import Callable
from typing import Any

import torch
from expecttest import assert_expected_inline
from pass_text import text, traced

from rushlight.edge.prepare_branches import prepare_branches

X = torch.ones(2, 2)
TRUE = torch.tensor(True)
NUMBERS = torch.tensor([1.0, 2.0])
higher_order = torch.ops.higher_order


def cond(p: torch.Tensor, yes: Any, no: Any, *operands: torch.Tensor) -> Any:
    return higher_order.cond(p, yes, no, operands)


def prepared(model: Callable[..., Any], *args: torch.Tensor) -> str:
    """The prepared program as text; what was given is as it was."""
    program = traced(model, *args)
    before = text(program)
    after = text(prepare_branches(program))
    assert text(program) == before
    return after


def test_a_tensor_of_one_branch_is_an_operand_of_both() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        return cond(p, lambda x: (x + NUMBERS,), lambda x: (x.sin(),), x)

    assert_expected_inline(
        prepared(model, TRUE, X),
        """\
c0: float32[2] = [1, 2]
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    in1: float32[2]
    %1: float32[2, 2] = add.Tensor(in0, in1)
    return [%1]
%2 = false_graph_0:
    in0: float32[2, 2]
    in1: float32[2]
    %1: float32[2, 2] = sin(in0)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [x, c0])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_tensor_of_an_inner_branch_goes_through_the_outer_one() -> None:
    def yes(p, x):  # type: ignore[no-untyped-def]
        return cond(p, lambda x: (x + NUMBERS,), lambda x: (x.sin(),), x)

    def model(p, x):  # type: ignore[no-untyped-def]
        return cond(p, yes, lambda p, x: (x.cos(),), p, x)

    assert_expected_inline(
        prepared(model, TRUE, X),
        """\
c0: float32[2] = [1, 2]
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: bool[]
    in1: float32[2, 2]
    in2: float32[2]
    %1 = true_graph_0:
        in0: float32[2, 2]
        in1: float32[2]
        %1: float32[2, 2] = add.Tensor(in0, in1)
        return [%1]
    %2 = false_graph_0:
        in0: float32[2, 2]
        in1: float32[2]
        %1: float32[2, 2] = sin(in0)
        return [%1]
    %3: (float32[2, 2]) = cond(in0, %1, %2, [in1, in2])
    %4: float32[2, 2] = getitem(%3, 0)
    return [%4]
%2 = false_graph_0:
    in0: bool[]
    in1: float32[2, 2]
    in2: float32[2]
    %1: float32[2, 2] = cos(in1)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [p, x, c0])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_view_of_an_input_is_copied_in_both_branches() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        return cond(p, lambda x: (x[0],), lambda x: (x.sum(0),), x)

    assert_expected_inline(
        prepared(model, TRUE, X),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2] = select.int(in0, 0, 0)
    %2: float32[2] = clone(%1, memory_format=contiguous_format)
    return [%2]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2] = sum.dim_IntList(in0, [0])
    %2: float32[2] = clone(%1, memory_format=contiguous_format)
    return [%2]
%3: (float32[2]) = cond(p, %1, %2, [x])
%4: float32[2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_value_that_is_returned_twice_is_copied_once() -> None:
    def yes(x):  # type: ignore[no-untyped-def]
        y = x.sin()
        return y, y

    def model(p, x):  # type: ignore[no-untyped-def]
        return cond(p, yes, lambda x: (x.cos(), x.exp()), x)

    assert_expected_inline(
        prepared(model, TRUE, X),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    %2: float32[2, 2] = clone(%1, memory_format=contiguous_format)
    return [%1, %2]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    %2: float32[2, 2] = exp(in0)
    %3: float32[2, 2] = clone(%2, memory_format=contiguous_format)
    return [%1, %3]
%3: (float32[2, 2], float32[2, 2]) = cond(p, %1, %2, [x])
%4: float32[2, 2] = getitem(%3, 0)
%5: float32[2, 2] = getitem(%3, 1)
return [%4, %5]
""",
    )


def test_branches_that_need_nothing_stay_as_they_are() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        return cond(p, lambda x: (x.sin(),), lambda x: (x.cos(),), x)

    program = traced(model, TRUE, X)
    assert text(prepare_branches(program)) == text(program)


def test_the_body_of_a_loop_is_copied_and_its_condition_is_not() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        return higher_order.while_loop(
            lambda x, y: x.sum() < NUMBERS.sum(), lambda x, y: (x + y, y[:]), (x, x.sin()), ()
        )

    assert_expected_inline(
        prepared(model, X),
        """\
c0: float32[2] = [1, 2]
x: float32[2, 2]
%1: float32[2, 2] = sin(x)
%2 = while_loop_cond_graph_0:
    in0: float32[2, 2]
    in1: float32[2, 2]
    in2: float32[2]
    %1: float32[] = sum(in0)
    %2: float32[] = sum(in2)
    %3: bool[] = lt.Tensor(%1, %2)
    return %3
%3 = while_loop_body_graph_0:
    in0: float32[2, 2]
    in1: float32[2, 2]
    in2: float32[2]
    %1: float32[2, 2] = add.Tensor(in0, in1)
    %2: float32[2, 2] = slice.Tensor(in1, 0, 0, 9223372036854775807)
    %3: float32[2, 2] = clone(%2, memory_format=contiguous_format)
    return [%1, %3]
%4: (float32[2, 2], float32[2, 2]) = while_loop(%2, %3, [x, %1], [c0])
%5: float32[2, 2] = getitem(%4, 0)
%6: float32[2, 2] = getitem(%4, 1)
return [%5, %6]
""",
    )
