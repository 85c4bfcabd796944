"""Tagging: calls of partitions, and the constants and buffers that go with them."""

import pytest
import torch
from expecttest import assert_expected_inline
from partition_text import X, calls_in, tag_calls, tag_of
from pass_text import text, traced
from torch.fx.passes.infra.partitioner import Partition

from rushlight.errors import ExportError
from rushlight.partition import tag_constant_data, tag_mutated_buffer, tag_partitions

NUMBERS = torch.tensor([1.0, 2.0])


def branches(p, x):  # type: ignore[no-untyped-def]
    """One of them holds a constant."""
    yes, no = lambda x: (x.sin() + NUMBERS,), lambda x: (x.cos(),)
    return torch.ops.higher_order.cond(p, yes, no, (x,))[0]


def counting():  # type: ignore[no-untyped-def]
    """A program that adds its input to a buffer."""
    total = torch.zeros(2, 2)
    return traced(lambda x, total: (total + x, x.sin()), X, buffers=["total"], total=total)


def test_partitions_are_named_by_their_numbers() -> None:
    program = traced(lambda x: x.sin().cos() + x, X)
    sine, cosine, _ = calls_in(program)
    partitions = [Partition(id=0, nodes=[cosine]), Partition(id=7, nodes=[sine])]
    assert tag_partitions(partitions, "part") == ["part0", "part7"]
    assert_expected_inline(
        text(program, tag_of),
        """\
x: float32[2, 2]
%1: float32[2, 2] = sin(x)  # part7
%2: float32[2, 2] = cos(%1)  # part0
%3: float32[2, 2] = add.Tensor(%2, x)
return [%3]
""",
    )


def test_a_node_in_two_partitions_is_refused() -> None:
    program = traced(lambda x: x.sin(), X)
    [sine] = calls_in(program)
    partitions = [Partition(id=i, nodes=[sine]) for i in range(2)]
    with pytest.raises(ExportError, match=r"sin \(aten.sin.default\) is in two.*'tag0' and 'tag1'"):
        tag_partitions(partitions)


def test_constants_go_with_a_partition_that_uses_them() -> None:
    """`both` is used by two and gets the first tag; `outside` is used by none."""
    program = traced(
        lambda x, first, both, outside: torch.mm(x, first + both).sin() * both - outside,
        X,
        first=torch.ones(2, 2),
        both=torch.ones(2, 2),
        outside=torch.ones(2),
    )
    tag_calls(program, {"add": "a", "mul": "b"})
    tag_constant_data(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
x: float32[2, 2]
first: float32[2, 2] = [[1, 1], [1, 1]]  # a
both: float32[2, 2] = [[1, 1], [1, 1]]  # a
outside: float32[2] = [1, 1]
%1: float32[2, 2] = add.Tensor(first, both)  # a
%2: float32[2, 2] = mm(x, %1)
%3: float32[2, 2] = sin(%2)
%4: float32[2, 2] = mul.Tensor(%3, both)  # b
%5: float32[2, 2] = sub.Tensor(%4, outside)
return [%5]
""",
    )


def test_a_buffer_that_is_written_is_no_constant() -> None:
    program = counting()
    tag_calls(program, {"add": "a", "sin": "a"})
    tag_constant_data(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
x: float32[2, 2]
total: float32[2, 2] = [[0, 0], [0, 0]]
%1: float32[2, 2] = add.Tensor(total, x)  # a
%2: float32[2, 2] = sin(x)  # a
return [total = %1, %2]
""",
    )


def test_a_buffer_goes_with_the_partition_that_alone_uses_and_writes_it() -> None:
    program = counting()
    tag_calls(program, {"add": "a", "sin": "b"})
    tag_mutated_buffer(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
x: float32[2, 2]
total: float32[2, 2] = [[0, 0], [0, 0]]  # a
%1: float32[2, 2] = add.Tensor(total, x)  # a
%2: float32[2, 2] = sin(x)  # b
return [total = %1, %2]
""",
    )


def test_a_buffer_that_others_read_or_write_stays() -> None:
    """`read` is read outside, `written` is written outside, `shared` belongs to two partitions."""
    program = traced(
        lambda x, read, written, shared: (
            read + x,
            (written + x).sin(),
            shared + x,
            read.cos(),
            shared * x,
        ),
        X,
        buffers=["read", "written", "shared"],
        read=torch.zeros(2, 2),
        written=torch.zeros(2, 2),
        shared=torch.zeros(2, 2),
    )
    tag_calls(program, {"add": "a", "mul": "b"})
    tag_mutated_buffer(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
x: float32[2, 2]
read: float32[2, 2] = [[0, 0], [0, 0]]
written: float32[2, 2] = [[0, 0], [0, 0]]
shared: float32[2, 2] = [[0, 0], [0, 0]]
%1: float32[2, 2] = add.Tensor(read, x)  # a
%2: float32[2, 2] = add.Tensor(written, x)  # a
%3: float32[2, 2] = sin(%2)
%4: float32[2, 2] = add.Tensor(shared, x)  # a
%5: float32[2, 2] = cos(read)
%6: float32[2, 2] = mul.Tensor(shared, x)  # b
return [read = %1, written = %3, shared = %4, %5, %6]
""",
    )


def test_constants_of_a_branch_go_with_its_calls() -> None:
    program = traced(branches, torch.tensor(True), X)
    for graph in (program.graph_module.true_graph_0, program.graph_module.false_graph_0):
        tag_calls(graph, {"add": "a"})
    tag_constant_data(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    %2: float32[2] = _tensor_constant0 = [1, 2]  # a
    %3: float32[2, 2] = add.Tensor(%1, %2)  # a
    return [%3]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [x])
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )


def test_branches_of_a_call_that_is_taken_are_left_alone() -> None:
    """They go into the partition as they are."""
    program = traced(branches, torch.tensor(True), X)
    tag_calls(program, {"cond": "a"})
    tag_calls(program.graph_module.true_graph_0, {"add": "b"})
    tag_constant_data(program)
    assert_expected_inline(
        text(program, tag_of),
        """\
p: bool[]
x: float32[2, 2]
%1 = true_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = sin(in0)
    %2: float32[2] = _tensor_constant0 = [1, 2]
    %3: float32[2, 2] = add.Tensor(%1, %2)  # b
    return [%3]
%2 = false_graph_0:
    in0: float32[2, 2]
    %1: float32[2, 2] = cos(in0)
    return [%1]
%3: (float32[2, 2]) = cond(p, %1, %2, [x])  # a
%4: float32[2, 2] = getitem(%3, 0)
return [%4]
""",
    )
