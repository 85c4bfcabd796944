"""Units: groups of calls that shall be in one partition, in an acyclic graph."""

import torch
from expecttest import assert_expected_inline
from partition_text import X, calls_in, operator_of
from pass_text import text, traced
from torch.export import ExportedProgram

from rushlight.partition.units import units_of


def units(program: ExportedProgram, taken: str, *groups: str) -> str:
    """The graph with the number of each call's unit, and the groups that were taken apart.

    Args:
        program: whose graph.
        taken: the supported operators.
        groups: operators that shall be in one unit.
    """
    supported, *whole = [
        [node for node in calls_in(program) if operator_of(node) in names.split()]
        for names in (taken, *groups)
    ]
    ordered, apart = units_of(program.graph, supported, whole)
    numbers = {node: f"unit {i}" for i, unit in enumerate(ordered) for node in unit}
    split = [" ".join(operator_of(node) for node in group) for group in apart]
    return text(program, numbers.get) + "".join(f"apart: {names}\n" for names in split)


def test_calls_without_groups_are_units() -> None:
    program = traced(lambda x: x.sin().cos(), X)
    assert_expected_inline(
        units(program, "sin cos"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # unit 0
%2: float32[2, 2] = cos(%1)  # unit 1
return [%2]
""",
    )


def test_a_group_comes_after_what_any_of_its_calls_needs() -> None:
    """`neg` stands between its calls, and comes before them."""
    program = traced(lambda x: x.sin().cos() + x.neg(), X)
    assert_expected_inline(
        units(program, "sin cos add", "sin cos add"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # unit 1
%2: float32[2, 2] = cos(%1)  # unit 1
%3: float32[2, 2] = neg(x)  # unit 0
%4: float32[2, 2] = add.Tensor(%2, %3)  # unit 1
return [%4]
""",
    )


def test_what_picks_a_result_goes_with_its_source() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        left, right = torch.split_with_sizes_copy(x, [1, 1], 1)
        return right.sin() + left

    program = traced(model, X)
    assert_expected_inline(
        units(program, "split_with_sizes_copy sin", "split_with_sizes_copy sin"),
        """\
x: float32[2, 2]
%1: (float32[2, 1], float32[2, 1]) = split_with_sizes_copy(x, [1, 1], 1)  # unit 0
%2: float32[2, 1] = getitem(%1, 0)  # unit 0
%3: float32[2, 1] = getitem(%1, 1)  # unit 0
%4: float32[2, 1] = sin(%3)  # unit 0
%5: float32[2, 1] = add.Tensor(%4, %2)  # unit 1
return [%5]
""",
    )


def test_a_cycle_through_supported_calls_becomes_one_unit() -> None:
    program = traced(lambda x: x.sin().exp().cos(), X)
    assert_expected_inline(
        units(program, "sin exp cos", "sin cos"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # unit 0
%2: float32[2, 2] = exp(%1)  # unit 0
%3: float32[2, 2] = cos(%2)  # unit 0
return [%3]
""",
    )


def test_a_group_around_a_call_that_is_not_supported_is_taken_apart() -> None:
    program = traced(lambda x: x.sin().exp().cos(), X)
    assert_expected_inline(
        units(program, "sin cos", "sin cos"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # unit 0
%2: float32[2, 2] = exp(%1)  # unit 1
%3: float32[2, 2] = cos(%2)  # unit 2
return [%3]
apart: sin cos
""",
    )


def test_of_two_groups_in_a_cycle_the_one_of_longer_reach_is_taken_apart() -> None:
    """One is around the other, and `neg` and `add` between them are not supported."""

    def model(x):  # type: ignore[no-untyped-def]
        return (x.sin().neg().exp().cos() + 1.0).tan()

    assert_expected_inline(
        units(traced(model, X), "sin exp cos tan", "sin tan", "exp cos"),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # unit 0
%2: float32[2, 2] = neg(%1)  # unit 1
%3: float32[2, 2] = exp(%2)  # unit 2
%4: float32[2, 2] = cos(%3)  # unit 2
%5: float32[2, 2] = add.Tensor(%4, 1.0)  # unit 3
%6: float32[2, 2] = tan(%5)  # unit 4
return [%6]
apart: sin tan
""",
    )
