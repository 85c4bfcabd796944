"""Structures are taken apart and put together as torch does it, without torch."""

from __future__ import annotations

import collections
import types

import pytest

from rushlight.runtime import tree

LEAF = {"t": "leaf"}
PAIR = {"t": "dict", "k": ["a", "b"], "c": [LEAF, {"t": "list", "c": [LEAF, LEAF]}]}


def flatten(json: object, value: object) -> list[object]:
    leaves: list[object] = []
    tree.parse(json).flatten(value, "x", leaves)
    return leaves


def test_round_trip_of_nested_containers() -> None:
    json = {"t": "tuple", "c": [LEAF, PAIR, {"t": "tuple", "c": []}]}
    value = (1, {"a": 2, "b": [3, 4]}, ())
    assert flatten(json, value) == [1, 2, 3, 4]
    assert tree.parse(json).unflatten(iter([1, 2, 3, 4])) == value
    assert tree.parse(json).n_leaves == 4


def test_the_order_of_a_dict_is_the_programs() -> None:
    assert flatten(PAIR, {"b": [2, 3], "a": 1}) == [1, 2, 3]


def test_lists_and_tuples_stand_for_each_other() -> None:
    assert flatten({"t": "list", "c": [LEAF, LEAF]}, (1, 2)) == [1, 2]


def test_objects_are_read_by_attribute_and_come_back_with_attributes() -> None:
    json = {"t": "object", "name": "Output", "k": ["logits", "state"], "c": [LEAF, LEAF]}
    assert flatten(json, types.SimpleNamespace(logits=1, state=2)) == [1, 2]
    assert flatten(json, {"logits": 1, "state": 2, "loss": None}) == [1, 2]
    result = tree.parse(json).unflatten(iter([1, 2]))
    assert result.logits == 1 and result["state"] == 2
    with pytest.raises(AttributeError, match="no 'loss'; it has logits, state"):
        _ = result.loss


def test_namedtuples_are_of_one_class() -> None:
    json = {"t": "namedtuple", "name": "Point", "k": ["x", "y"], "c": [LEAF, LEAF]}
    first = tree.parse(json).unflatten(iter([1, 2]))
    second = tree.parse(json).unflatten(iter([3, 4]))
    assert first == (1, 2) and first.y == 2 and type(first) is type(second)
    assert flatten(json, collections.namedtuple("Other", "x y")(5, 6)) == [5, 6]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "x: expected a dict with 'a', 'b', got a list"),
        (types.SimpleNamespace(a=1, b=2), "expected a dict with 'a', 'b', got a SimpleNamespace"),
        ({"a": 1}, "x: expected the keys 'a', 'b'; missing: 'b'"),
        ({"a": 1, "b": [1, 2], "c": 3}, "not expected: 'c'"),
        ({"a": 1, "b": [1]}, r"x\['b'\]: expected a list of 2 values, got a list of 1"),
        ({"a": 1, "b": "ab"}, r"x\['b'\]: expected a list of 2 values, got a str"),
    ],
)
def test_what_does_not_fit_is_named(value: object, message: str) -> None:
    with pytest.raises(tree.TreeError, match=message):
        flatten(PAIR, value)


@pytest.mark.parametrize(
    "json",
    [
        None,
        {"t": "set", "c": []},
        {"t": "dict", "k": ["a"], "c": []},
        {"t": "dict", "k": [["a"]], "c": [LEAF]},
        {"t": "namedtuple", "name": "1x", "k": ["a"], "c": [LEAF]},
        {"t": "list", "c": 3},
    ],
)
def test_what_is_no_structure_is_refused(json: object) -> None:
    with pytest.raises(ValueError):
        tree.parse(json)


def test_pytree_strings_of_executorch() -> None:
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = (
        '[1, {"type": "builtins.dict", "context": "[\\"x\\", \\"y\\"]", "children_spec": ['
        + leaf
        + ', {"type": "builtins.list", "context": "null", "children_spec": ['
        + leaf
        + "]}]}]"
    )
    parsed = tree.parse_pytree(text)
    assert parsed is not None
    assert parsed.unflatten(iter([1, 2])) == {"x": 1, "y": [2]}
    assert tree.parse_pytree("") is None
    assert tree.parse_pytree('[1, {"type": "my.Class"}]') is None
    assert tree.parse_pytree("[" * 100_000) is None
