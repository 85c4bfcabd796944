"""Partitions in the branches and bodies of control flow."""

import torch
from expecttest import assert_expected_inline
from partition_text import X, lowered
from pass_text import traced

higher_order = torch.ops.higher_order
TRUE = torch.tensor(True)
NUMBERS = torch.tensor([1.0, 2.0])


def branches(p, x):  # type: ignore[no-untyped-def]
    """One of them holds a constant."""
    yes, no = lambda x: (x.sin() + NUMBERS,), lambda x: (x.cos() * 2.0,)
    return higher_order.cond(p, yes, no, (x,))[0]


def test_each_branch_calls_its_own_part() -> None:
    """The constant of the branch went with its part."""
    assert_expected_inline(
        lowered(traced(branches, TRUE, X), add="a", cos="a"),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    %2 = lowered_module_0 for Untouched:
        c0: float32[2] = [1, 2]
        in1: float32[2, 2]
        %1: float32[2, 2] = add.Tensor(in1, c0)
        return [%1]
    %3: (float32[2, 2]) = executorch_call_delegate(%2, %1)
    %4: float32[2, 2] = getitem(%3, 0)
    return [%4]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1 = lowered_module_0 for Untouched:
        in0: float32[2, 2]
        %1: float32[2, 2] = cos(in0)
        return [%1]
    %2: (float32[2, 2]) = executorch_call_delegate(%1, in0)
    %3: float32[2, 2] = getitem(%2, 0)
    %4: float32[2, 2] = mul.Tensor(%3, 2.0)
    return [%4]
%3: (float32[2, 2]) = cond(p, %1, %2, [x])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_constant_that_a_branch_uses_as_well_stays_there() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        yes, no = lambda x: ((x + NUMBERS) * NUMBERS,), lambda x: (x.cos(),)
        return higher_order.cond(p, yes, no, (x,))[0]

    assert_expected_inline(
        lowered(traced(model, TRUE, X), add="a"),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1 = lowered_module_0 for Untouched:
        c0: float32[2] = [1, 2]
        in1: float32[2, 2]
        %1: float32[2, 2] = add.Tensor(in1, c0)
        return [%1]
    %2: (float32[2, 2]) = executorch_call_delegate(%1, in0)
    %3: float32[2, 2] = getitem(%2, 0)
    %4: float32[2] = _tensor_constant0 = [1, 2]
    %5: float32[2, 2] = mul.Tensor(%3, %4)
    return [%5]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [x])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_branches_are_taken_with_their_call() -> None:
    """What stands inside them is no part of its own."""
    program = traced(lambda p, x: branches(p, x).exp(), TRUE, X)
    assert_expected_inline(
        lowered(program, cond="a", exp="a", add="b"),
        """\
p: bool[]
x: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    p: bool[]
    x: float32[2, 2]
    %1 = true_graph_0:
        in0: float32[2, 2]
        %1: float32[2, 2] = sin(in0)
        %2: float32[2] = _tensor_constant0 = [1, 2]
        %3: float32[2, 2] = add.Tensor(%1, %2)
        return [%3]
    %2 = false_graph_0:
        in0: float32[2, 2]
        %1: float32[2, 2] = cos(in0)
        %2: float32[2, 2] = mul.Tensor(%1, 2.0)
        return [%2]
    %3: (float32[2, 2]) = cond(p, %1, %2, [x])
    %4: float32[2, 2] = getitem(%3, 0)
    %5: float32[2, 2] = exp(%4)
    return [%5]
%2: (float32[2, 2]) = executorch_call_delegate(%1, p, x)
%3: float32[2, 2] = getitem(%2, 0)
return [%3]
""",
    )


def test_a_branch_of_a_branch() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        inner = lambda p, x: (branches(p, x).exp(),)  # noqa: E731
        return higher_order.cond(p, inner, lambda p, x: (x.neg(),), (p, x))[0]

    assert_expected_inline(
        lowered(traced(model, TRUE, X), cos="a"),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: bool[]
    in1: float32[2, 2]
    %1 = true_graph_0:
        in0: float32[2, 2]
        %1: float32[2, 2] = sin(in0)
        %2: float32[2] = _tensor_constant0 = [1, 2]
        %3: float32[2, 2] = add.Tensor(%1, %2)
        return [%3]
    %2 = false_graph_0:
        in0: float32[2, 2]
        %1 = lowered_module_0 for Untouched:
            in0: float32[2, 2]
            %1: float32[2, 2] = cos(in0)
            return [%1]
        %2: (float32[2, 2]) = executorch_call_delegate(%1, in0)
        %3: float32[2, 2] = getitem(%2, 0)
        %4: float32[2, 2] = mul.Tensor(%3, 2.0)
        return [%4]
    %3: (float32[2, 2]) = cond(in0, %1, %2, [in1])
    %4: float32[2, 2] = getitem(%3, 0)
    %5: float32[2, 2] = exp(%4)
    return [%5]
%2 = false_graph_0:
    in0: bool[]
    in1: float32[2, 2]
    %1: float32[2, 2] = neg(in1)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [p, x])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_loop_has_parts_in_its_condition_and_its_body() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        return higher_order.while_loop(lambda x: x.sum() < 60, lambda x: (x.sin() + x,), (x,), ())[
            0
        ]

    assert_expected_inline(
        lowered(traced(model, X), sum="a", sin="a"),
        """\
x: float32[2, 2]
%1 = while_loop_cond_graph_0:
    in0: float32[2, 2]
    %1 = lowered_module_0 for Untouched:
        in0: float32[2, 2]
        %1: float32[] = sum(in0)
        return [%1]
    %2: (float32[]) = executorch_call_delegate(%1, in0)
    %3: float32[] = getitem(%2, 0)
    %4: bool[] = lt.Scalar(%3, 60)
    return %4
%2 = while_loop_body_graph_0:
    in0: float32[2, 2]
    %1 = lowered_module_0 for Untouched:
        in0: float32[2, 2]
        %1: float32[2, 2] = sin(in0)
        return [%1]
    %2: (float32[2, 2]) = executorch_call_delegate(%1, in0)
    %3: float32[2, 2] = getitem(%2, 0)
    %4: float32[2, 2] = add.Tensor(%3, in0)
    return [%4]
%3: (float32[2, 2]) = while_loop(%1, %2, [x], [])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )
