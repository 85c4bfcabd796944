"""Extraction: a partition as a program of its own."""

from collections.abc import Mapping

import pytest
import torch
from expecttest import assert_expected_inline
from partition_text import X, tag_calls
from pass_text import text, traced
from torch.export import ExportedProgram

from rushlight.errors import ExportError
from rushlight.partition import DelegationSpec, tag_constant_data, tag_mutated_buffer
from rushlight.partition.extract import data_of, extract
from rushlight.partition.regions import find_regions


def part(program: ExportedProgram, tags: Mapping[str, str]) -> str:
    """The only part of a program, as text; the program is as it was."""
    tag_calls(program, tags)
    tag_constant_data(program)
    tag_mutated_buffer(program)
    before = text(program)
    data = data_of(program)
    specs = {tag: DelegationSpec("Untouched") for tag in tags.values()}
    regions = find_regions(program.graph, data.specs, specs, "forward")
    [region] = dict.fromkeys(regions.values())
    cut = text(extract(region, data, program, "forward").program)
    assert text(program) == before
    return cut


def test_values_from_outside_are_inputs_and_those_used_outside_outputs() -> None:
    program = traced(lambda x, y: ((x.sin() + y).cos() * 2, x.sin() + y), X, X)
    assert_expected_inline(
        part(program, {"add": "a", "cos": "a"}),
        """\
in0: float32[2, 2]
y: float32[2, 2]
in1: float32[2, 2]
%1: float32[2, 2] = add.Tensor(in0, y)
%2: float32[2, 2] = cos(%1)
%3: float32[2, 2] = add.Tensor(in1, y)
return [%2, %3]
""",
    )


def test_constants_of_the_part_are_its_own_and_keep_the_programs_order() -> None:
    program = traced(
        lambda x, w, b, other: torch.mm(x + b, w) + other,
        X,
        w=torch.ones(2, 2),
        b=torch.ones(2),
        other=torch.ones(2),
    )
    assert_expected_inline(
        part(program, {"mm": "a", "add": "a"}),
        """\
w: float32[2, 2] = [[1, 1], [1, 1]]
b: float32[2] = [1, 1]
other: float32[2] = [1, 1]
x: float32[2, 2]
%1: float32[2, 2] = add.Tensor(x, b)
%2: float32[2, 2] = mm(%1, w)
%3: float32[2, 2] = add.Tensor(%2, other)
return [%3]
""",
    )


def test_a_constant_without_a_tag_is_passed() -> None:
    program = traced(lambda x, w: torch.mm(x, w), X, w=torch.ones(2, 2))
    tag_calls(program, {"mm": "a"})
    data = data_of(program)
    regions = find_regions(program.graph, data.specs, {"a": DelegationSpec("Untouched")}, "forward")
    [region] = regions.values()
    assert_expected_inline(
        text(extract(region, data, program, "forward").program),
        """\
x: float32[2, 2]
w: float32[2, 2]
%1: float32[2, 2] = mm(x, w)
return [%1]
""",
    )


def test_the_new_value_of_an_own_buffer_stays_inside() -> None:
    program = traced(
        lambda x, total: (total + x, (total + x).sin()),
        X,
        buffers=["total"],
        total=torch.zeros(2, 2),
    )
    assert_expected_inline(
        part(program, {"add": "a"}),
        """\
total: float32[2, 2] = [[0, 0], [0, 0]]
x: float32[2, 2]
%1: float32[2, 2] = add.Tensor(total, x)
%2: float32[2, 2] = add.Tensor(total, x)
return [total = %1, %2]
""",
    )


def test_a_new_value_that_is_returned_too_is_handed_out() -> None:
    def model(x, total):  # type: ignore[no-untyped-def]
        new = total + x
        return new, new

    program = traced(model, X, buffers=["total"], total=torch.zeros(2, 2))
    assert_expected_inline(
        part(program, {"add": "a"}),
        """\
total: float32[2, 2] = [[0, 0], [0, 0]]
x: float32[2, 2]
%1: float32[2, 2] = add.Tensor(total, x)
return [total = %1, %1]
""",
    )


def test_what_picks_a_result_belongs_to_its_source() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        left, right = torch.split_with_sizes_copy(x, [1, 1], 1)
        return right.sin() + left

    assert_expected_inline(
        part(traced(model, X), {"split_with_sizes_copy": "a"}),
        """\
x: float32[2, 2]
%1: (float32[2, 1], float32[2, 1]) = split_with_sizes_copy(x, [1, 1], 1)
%2: float32[2, 1] = getitem(%1, 0)
%3: float32[2, 1] = getitem(%1, 1)
return [%2, %3]
""",
    )


def test_sizes_are_inputs() -> None:
    def model(x):  # type: ignore[no-untyped-def]
        return torch.ops.aten.view_copy(x, [x.shape[0] * x.shape[1]]).sin()

    program = traced(model, torch.ones(3, 4), dynamic=True)
    assert_expected_inline(
        part(program, {"view_copy": "a", "sin": "a"}),
        """\
x: float32[s0, s1]
in0: SymInt
%1: float32[s0*s1] = view_copy(x, [in0])
%2: float32[s0*s1] = sin(%1)
return [%2]
""",
    )


def test_sizes_are_no_outputs() -> None:
    program = traced(lambda x: x.sin().sum() * x.shape[0], torch.ones(3, 4), dynamic=True)
    with pytest.raises(ExportError, match="which is not a tensor: leave nodes that compute sizes"):
        part(program, {"sym_size": "a", "sin": "a"})


def test_branches_go_with_the_call_that_runs_them() -> None:
    def model(p, x):  # type: ignore[no-untyped-def]
        yes, no = lambda x: (x.sin(),), lambda x: (x.cos(),)
        return torch.ops.higher_order.cond(p, yes, no, (x + 1.0,))[0]

    program = traced(model, torch.tensor(True), X)
    assert_expected_inline(
        part(program, {"cond": "a"}),
        """\
p: bool[]
in0: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    return [%1]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [in0])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_a_buffer_that_is_used_outside_has_no_second_owner() -> None:
    program = traced(
        lambda x, total: (total + x, total.sin()), X, buffers=["total"], total=torch.zeros(2, 2)
    )
    total = program.graph.find_nodes(op="placeholder")[-1]
    total.meta["delegation_tag"] = "a"
    with pytest.raises(ExportError, match=r"the buffer total, which is used outside.* by sin"):
        part(program, {"add": "a"})
