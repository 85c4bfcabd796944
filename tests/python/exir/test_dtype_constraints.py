"""Dtypes that Edge operators take: against PyTorch's rules of promotion."""

from __future__ import annotations

import itertools

import pytest
import torch

import rushlight as rl
from rushlight.edge.dtype_constraints import (
    EXPLICIT,
    NAMES,
    AllowedDtypeSet,
    FunctionDtypeConstraint,
    constraint_of,
)
from rushlight.edge.dtype_trials import aggregate
from rushlight.edge.operators import ops

aten = torch.ops.aten
REAL = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32)


def test_sums_have_the_promoted_dtype() -> None:
    constraint = constraint_of(aten.add.Tensor)
    for a, b, result in itertools.product(REAL, repeat=3):
        types = {"self": a, "other": b, "__ret_0": result}
        assert constraint.validate(types) == (result == torch.promote_types(a, b)), types


def test_functions_of_integers_are_floating() -> None:
    constraint = constraint_of(aten.sin.default)
    for dtype, result in itertools.product(REAL, repeat=2):
        expected = dtype if dtype.is_floating_point else torch.get_default_dtype()
        assert constraint.validate({"self": dtype, "__ret_0": result}) == (result == expected)


def test_only_dtypes_of_the_kernel_are_taken() -> None:
    floating = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    schema = ops.edge.aten._softmax.default._schema
    assert schema.arguments[0].allowed_types == floating
    assert schema.returns[0].allowed_types == floating
    assert schema.name == "aten::_softmax" and str(schema) == str(aten._softmax.default._schema)
    embedding = constraint_of(aten.embedding.default)
    assert embedding["indices"] == {torch.int32, torch.int64}
    assert embedding["no such input"] == set()


def test_optional_inputs_and_lists_may_be_left_out() -> None:
    norm = constraint_of(aten.native_layer_norm.default)
    results = dict.fromkeys(("__ret_0", "__ret_1", "__ret_2"), torch.float32)
    assert norm.validate({"input": torch.float32, **results})
    assert not norm.validate({"input": torch.float32, "bias": torch.int32, **results})
    assert not norm.validate({"weight": torch.float32, **results})
    cat = constraint_of(aten.cat.default)
    assert cat.validate({"tensors": None, "__ret_0": torch.float32})
    assert not cat.validate({"tensors": torch.float16, "__ret_0": torch.float32})
    assert not cat.validate({"tensors": torch.float16, "other": torch.float16})


def test_an_operator_without_kernel_takes_any() -> None:
    constraint = constraint_of(aten.heaviside.default)
    assert constraint.validate({"self": torch.int8, "values": torch.bool, "__ret_0": torch.float64})
    assert constraint["self"] == set(NAMES)


def test_explicit_constraints_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {
        "type_alias": {"T0": ["Float", "Double"], "T1": ["Char"], "T2": ["Int"]},
        "type_constraint": [{"self": "T0", "__ret_0": "T0"}, {"self": "T1", "__ret_0": "T2"}],
    }
    monkeypatch.setitem(EXPLICIT, "aten::abs", entry)
    constraint = constraint_of(aten.abs.default)
    for types in ((torch.float64, torch.float64), (torch.int8, torch.int32)):
        assert constraint.validate(dict(zip(("self", "__ret_0"), types, strict=True)))
    assert not constraint.validate({"self": torch.float32, "__ret_0": torch.float64})
    with pytest.raises(rl.ExportError, match="must name all tensors"):
        FunctionDtypeConstraint(["self"], [], {"T0": []}, [{"other": "T0"}])


def test_an_alias_is_reduced_and_cleared() -> None:
    alias = AllowedDtypeSet({torch.int8, torch.int32})
    assert not alias.reduce_to(torch.int16) and alias.reduce_to(torch.int32)
    assert torch.int8 not in alias
    alias.clear()
    assert torch.int8 in alias


def test_combinations_become_few_alternatives() -> None:
    same = {(a, a, a) for a in "abc"}
    assert aggregate(same, key=str) == ([("a", "b", "c")], [(0, 0, 0)])
    first = {(a, "x") for a in "abc"} | {("x", "y")}
    aliases, rows = aggregate(first, key=str)
    assert {
        one
        for row in rows
        for one in itertools.product(*(aliases[i] for i in row))
        if all(one[i] == one[j] for i in (0, 1) for j in (0, 1) if row[i] == row[j])
    } == first
    assert len(rows) == 2
