"""prepare_state: what a model writes has one name in the graph."""

from collections.abc import Callable
from typing import Any

import torch
from expecttest import assert_expected_inline
from pass_text import text, traced

from rushlight.edge.prepare_state import prepare_state

X = torch.ones(2, 2)


def prepared(model: Callable[..., Any], **tensors: torch.Tensor) -> str:
    """The prepared program as text; what was given is as it was."""
    program = traced(model, X, **tensors)
    before = text(program)
    after = prepare_state(program)
    assert after is not program
    assert text(program) == before
    names = [node.name for node in after.graph.find_nodes(op="placeholder")]
    assert [spec.arg.name for spec in after.graph_signature.input_specs] == names
    return text(after)


def is_left_alone(model: Callable[..., Any], **tensors: torch.Tensor) -> bool:
    program = traced(model, X, **tensors)
    return prepare_state(program) is program


def write_one(x, one, other):  # type: ignore[no-untyped-def]
    one.add_(x)
    return other * 2


def test_a_write_is_seen_through_the_other_name() -> None:
    memory = torch.zeros(2, 2)
    assert_expected_inline(
        prepared(write_one, one=memory, other=memory),
        """\
x: float32[2, 2]
one: float32[2, 2] = [[0, 0], [0, 0]]
%1: float32[2, 2] = add_.Tensor(one, x)
%2: float32[2, 2] = mul.Tensor(one, 2)
return [%2]
""",
    )


def test_the_first_name_stays_though_the_second_is_written() -> None:
    def model(x, one, other):  # type: ignore[no-untyped-def]
        other.add_(x)
        return one * 2

    memory = torch.zeros(2, 2)
    assert_expected_inline(
        prepared(model, one=memory, other=memory),
        """\
x: float32[2, 2]
one: float32[2, 2] = [[0, 0], [0, 0]]
%1: float32[2, 2] = add_.Tensor(one, x)
%2: float32[2, 2] = mul.Tensor(one, 2)
return [%2]
""",
    )


def test_three_names_become_one_and_other_state_stays() -> None:
    def model(x, first, second, apart, third):  # type: ignore[no-untyped-def]
        second.t().add_(x)
        apart.mul_(x)
        return first + third + apart

    memory = torch.zeros(2, 2)
    names = dict.fromkeys(["first", "second"], memory)
    assert_expected_inline(
        prepared(model, **names, apart=torch.ones(2, 2), third=memory),
        """\
x: float32[2, 2]
first: float32[2, 2] = [[0, 0], [0, 0]]
apart: float32[2, 2] = [[1, 1], [1, 1]]
%1: float32[2, 2] = t(first)
%2: float32[2, 2] = add_.Tensor(%1, x)
%3: float32[2, 2] = mul_.Tensor(apart, x)
%4: float32[2, 2] = add.Tensor(first, first)
%5: float32[2, 2] = add.Tensor(%4, %3)
return [%5]
""",
    )


def test_what_is_only_read_keeps_both_names() -> None:
    memory = torch.zeros(2, 2)
    assert is_left_alone(lambda x, one, other: x + one + other, one=memory, other=memory)


def test_a_write_elsewhere_changes_no_names() -> None:
    def model(x, one, other, written):  # type: ignore[no-untyped-def]
        written.add_(x)
        return one + other + written

    memory = torch.zeros(2, 2)
    assert is_left_alone(model, one=memory, other=memory, written=torch.zeros(2, 2))


def test_tensors_of_their_own_are_left_alone() -> None:
    assert is_left_alone(write_one, one=torch.zeros(2, 2), other=torch.zeros(2, 2))


def test_halves_of_one_memory_are_left_alone() -> None:
    one, other = torch.zeros(4, 2).chunk(2)
    assert is_left_alone(write_one, one=one, other=other)
