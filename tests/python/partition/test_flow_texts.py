"""The ways to lower: a whole program, parts of it, several methods at once."""

import torch
from expecttest import assert_expected_inline
from partition_text import ByOperator, X
from pass_text import text, traced

from rushlight.partition import AllNodePartitioner, MethodProgramsPartitionerSpec, to_backend
from rushlight.partition.flat import flatten

COUNTED = {"buffers": ["total"], "total": torch.zeros(2, 2)}


def count(x, total):  # type: ignore[no-untyped-def]
    new = total + x
    return new, new.sin()


def test_a_whole_program_is_one_call() -> None:
    program = traced(count, X, **COUNTED)
    module = to_backend("Untouched", program, [])
    assert_expected_inline(
        text(module.exported_program()),
        """\
x: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    total: float32[2, 2] = [[0, 0], [0, 0]]
    %1: float32[2, 2] = add.Tensor(total, x)
    %2: float32[2, 2] = sin(%1)
    return [total = %1, %2]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
return [%3]
""",
    )


def test_arguments_that_come_back_and_results_that_come_twice_are_no_outputs() -> None:
    def model(x, y):  # type: ignore[no-untyped-def]
        z = x.sin()
        return z, y, z

    flat, call = flatten(traced(model, X, X))
    assert call.returned == [("computed", 0), ("passed", 1), ("computed", 0)]
    assert_expected_inline(
        text(flat),
        """\
x: float32[2, 2]
y: float32[2, 2]
%1: float32[2, 2] = sin(x)
return [%1]
""",
    )


def test_arguments_that_come_back_are_returned_by_the_caller() -> None:
    module = to_backend("Untouched", traced(lambda x, y: (x.sin(), y), X, X), [])
    assert_expected_inline(
        text(module.exported_program()),
        """\
x: float32[2, 2]
y: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    y: float32[2, 2]
    %1: float32[2, 2] = sin(x)
    return [%1]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x, y)
%3: float32[2, 2] = getitem(%2, 0)
return [%3, y]
""",
    )


def test_all_calls_of_a_program_are_one_part() -> None:
    program = traced(lambda x, w: torch.mm(x, w).sin(), X, w=torch.ones(2, 2))
    assert_expected_inline(
        text(to_backend(program, AllNodePartitioner("Untouched"))),
        """\
x: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    w: float32[2, 2] = [[1, 1], [1, 1]]
    x: float32[2, 2]
    %1: float32[2, 2] = mm(x, w)
    %2: float32[2, 2] = sin(%1)
    return [%2]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
return [%3]
""",
    )


def test_a_part_after_a_part_of_another_partitioner() -> None:
    """The names of lowered modules go on, and calls of delegates stay."""
    program = traced(lambda x: x.sin().cos().exp(), X)
    first = to_backend(program, ByOperator({"sin": "a"}))
    assert_expected_inline(
        text(to_backend(first, ByOperator({"exp": "a"}))),
        """\
x: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    %1: float32[2, 2] = sin(x)
    return [%1]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
%4: float32[2, 2] = cos(%3)
%5 = lowered_module_1 for Untouched:
    in0: float32[2, 2]
    %1: float32[2, 2] = exp(in0)
    return [%1]
%6: (float32[2, 2]) = executorch_call_delegate(%5, %4)
%7: float32[2, 2] = getitem(%6, 0)
return [%7]
""",
    )


def test_a_method_without_a_partitioner_stays() -> None:
    """Both methods have parts of one name, which are apart."""
    one, other, third = (traced(lambda x: x.sin() + x, X) for _ in range(3))
    methods = to_backend(
        MethodProgramsPartitionerSpec(
            {"one": one, "other": other, "third": third},
            {"one": ByOperator({"sin": "a"}), "other": ByOperator({"add": "a"})},
        )
    )
    assert methods["third"] is third
    assert_expected_inline(
        text(methods["one"]) + text(methods["other"]),
        """\
x: float32[2, 2]
%1 = lowered_module_0 for Untouched:
    x: float32[2, 2]
    %1: float32[2, 2] = sin(x)
    return [%1]
%2: (float32[2, 2]) = executorch_call_delegate(%1, x)
%3: float32[2, 2] = getitem(%2, 0)
%4: float32[2, 2] = add.Tensor(%3, x)
return [%4]
x: float32[2, 2]
%1: float32[2, 2] = sin(x)
%2 = lowered_module_0 for Untouched:
    in0: float32[2, 2]
    x: float32[2, 2]
    %1: float32[2, 2] = add.Tensor(in0, x)
    return [%1]
%3: (float32[2, 2]) = executorch_call_delegate(%2, %1, x)
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )
