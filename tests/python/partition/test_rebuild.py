"""Rebuilding: partitions become calls of what they were lowered to."""

import torch
from expecttest import assert_expected_inline
from partition_text import X, lowered
from pass_text import traced


def test_a_part_between_two_calls() -> None:
    program = traced(lambda x: (x.sin() + 1.0).cos(), X)
    assert_expected_inline(
        lowered(program, add="a"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)
%2 = lowered_module_0 for Untouched:
    in0: float32[2, 2]
    %1: float32[2, 2] = add.Tensor(in0, 1.0)
    return [%1]
%3: (float32[2, 2]) = executorch_call_delegate(%2, %1)
%4: float32[2, 2] = getitem(%3, 0)
%5: float32[2, 2] = cos(%4)
return [%5]
""",
    )


def test_each_result_of_a_part_is_picked() -> None:
    program = traced(lambda x, y: (x.sin(), x.sin() * y), X, X)
    assert_expected_inline(
        lowered(program, sin="a", mul="a"),
        """\
x: float32[2, 2]
y: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    y: float32[2, 2]
    %1: float32[2, 2] = sin(x)
    %2: float32[2, 2] = sin(x)
    %3: float32[2, 2] = mul.Tensor(%2, y)
    return [%1, %3]
%2: (float32[2, 2], float32[2, 2]) = executorch_call_delegate(%1, x, y)
%3: float32[2, 2] = getitem(%2, 0)
%4: float32[2, 2] = getitem(%2, 1)
return [%3, %4]
""",
    )


def test_parts_stand_after_what_they_need() -> None:
    """The part begins with the first call, and needs the third."""
    program = traced(lambda x: x.sin() + x.cos().exp().sin(), X)
    assert_expected_inline(
        lowered(program, sin="a", add="a"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = cos(x)
%2: float32[2, 2] = exp(%1)
%3 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(x)
    %2: float32[2, 2] = sin(in0)
    %3: float32[2, 2] = add.Tensor(%1, %2)
    return [%3]
%4: (float32[2, 2]) = executorch_call_delegate(%3, x, %2)
%5: float32[2, 2] = getitem(%4, 0)
return [%5]
""",
    )


def test_constants_that_only_parts_use_leave_the_program() -> None:
    """`w` leaves it, `both` is in the part and in the program."""
    program = traced(
        lambda x, w, both: torch.mm(x + both, w) * both,
        X,
        w=torch.ones(2, 2),
        both=torch.ones(2),
    )
    assert_expected_inline(
        lowered(program, mm="a", add="a"),
        """\
x: float32[2, 2]
both: float32[2] = [1, 1]
%1 = lowered_module_0 for Untouched:
    w: float32[2, 2] = [[1, 1], [1, 1]]
    both: float32[2] = [1, 1]
    x: float32[2, 2]
    %1: float32[2, 2] = add.Tensor(x, both)
    %2: float32[2, 2] = mm(%1, w)
    return [%2]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
%4: float32[2, 2] = mul.Tensor(%3, both)
return [%4]
""",
    )


def test_a_buffer_that_a_part_owns_leaves_the_program() -> None:
    program = traced(
        lambda x, mine, other: (mine + x, other * x, (mine + x).sin()),
        X,
        buffers=["mine", "other"],
        mine=torch.zeros(2, 2),
        other=torch.zeros(2, 2),
    )
    assert_expected_inline(
        lowered(program, add="a"),
        """\
x: float32[2, 2]
other: float32[2, 2] = [[0, 0], [0, 0]]
%1 = lowered_module_0 for Untouched:
    mine: float32[2, 2] = [[0, 0], [0, 0]]
    x: float32[2, 2]
    %1: float32[2, 2] = add.Tensor(mine, x)
    %2: float32[2, 2] = add.Tensor(mine, x)
    return [mine = %1, %2]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
%4: float32[2, 2] = mul.Tensor(other, x)
%5: float32[2, 2] = sin(%3)
return [other = %4, %5]
""",
    )


def test_two_parts_share_a_value() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        y = x.exp()
        return y.sin(), y.cos()

    assert_expected_inline(
        lowered(traced(model, X), sin="a", cos="b"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = exp(x)
%2 = lowered_module_0 for Untouched:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    return [%1]
%3: (float32[2, 2]) = executorch_call_delegate(%2, %1)
%4: float32[2, 2] = getitem(%3, 0)
%5 = lowered_module_1 for Untouched:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    return [%1]
%6: (float32[2, 2]) = executorch_call_delegate(%5, %1)
%7: float32[2, 2] = getitem(%6, 0)
return [%4, %7]
""",
    )


def test_sizes_are_passed() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        return torch.ops.aten.view_copy(x, [x.shape[0] * x.shape[1]]).sin()

    program = traced(model, torch.ones(3, 4), dynamic=True)
    assert_expected_inline(
        lowered(program, view_copy="a", sin="a"),
        """\
x: float32[s0, s1]
%1: SymInt = sym_size.int(x, 0)
%2: SymInt = sym_size.int(x, 1)
%3: SymInt = mul(%1, %2)
%4 = lowered_module_0 for Untouched:
    x: float32[s0, s1]
    in0: SymInt
    %1: float32[s0*s1] = view_copy(x, [in0])
    %2: float32[s0*s1] = sin(%1)
    return [%2]
%5: (float32[s0*s1]) = executorch_call_delegate(%4, x, %3)
%6: float32[s0*s1] = getitem(%5, 0)
return [%6]
""",
    )


def test_a_program_without_parts_stays_as_it_is() -> None:
    program = traced(lambda x: x.sin(), X)
    assert_expected_inline(
        lowered(program, cos="a"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)
return [%1]
""",
    )
