"""ExecuTorch's forms of developer tools: method suites, taps by rules, comparators as classes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import rushlight as rl
from rushlight.devtools import (
    BundledProgram,
    L1Comparator,
    MethodTestCase,
    MethodTestSuite,
    MSEComparator,
    NumericalComparatorBase,
    SNRComparator,
    find_tap_nodes,
    tap_intermediate_outputs,
)
from rushlight.devtools.suites import (
    deserialize_from_flatbuffer_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
)
from rushlight.devtools.taps import StatReducer, TapRule, strip_taps, tap_compare
from rushlight.errors import ExportError
from rushlight.exir.manager import to_edge
from rushlight.tap import STATS, get_reducer, select_by_op_type


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()


X = torch.tensor([[1.0, 2.0, 3.0]])


def _program(model: torch.nn.Module) -> rl.ExecutorchProgramManager:
    return rl.to_edge(torch.export.export(model, (X,))).to_executorch()


def test_suites_become_a_bundle_that_our_runtime_checks(model: torch.nn.Module) -> None:
    suites = [MethodTestSuite("forward", [MethodTestCase([X], [model(X)])])]
    suites = pickle.loads(pickle.dumps(suites))
    data = serialize_from_bundled_program_to_flatbuffer(BundledProgram(_program(model), suites))
    case = rl.load_bundle(data).cases["forward"][0]
    np.testing.assert_array_equal(case.inputs[0], X.numpy())
    np.testing.assert_array_equal(case.expected, model(X).detach().numpy())
    tables = deserialize_from_flatbuffer_to_bundled_program(data)
    assert [suite.method_name for suite in tables.method_test_suites] == ["forward"]


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        (MethodTestSuite("other", []), "no method of the program; it has forward"),
        (MethodTestSuite("forward", [MethodTestCase([X, X])]), "2 inputs and the method takes 1"),
        (MethodTestSuite("forward", [MethodTestCase([X.double()])]), "dtype torch.float64"),
        (MethodTestSuite("forward", [MethodTestCase([1])]), "is of int; the program has Tensor"),
    ],
)
def test_cases_that_do_not_fit_are_refused(
    model: torch.nn.Module, suite: MethodTestSuite, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        BundledProgram(_program(model), [suite])


def test_a_case_of_texts_and_a_bundle_of_nothing_are_refused() -> None:
    with pytest.raises(AssertionError, match="input 0 is 'a' of type str"):
        MethodTestCase(["a"])
    with pytest.raises(RuntimeError, match="not none of both"):
        BundledProgram(None, [])


def test_a_node_follows_the_first_rule_that_selects_it(model: torch.nn.Module) -> None:
    exported = torch.export.export(model, (X,))
    rules = [TapRule(select_by_op_type("aten.relu.default")), (lambda node: True, "STATS")]
    tapped, taps = tap_intermediate_outputs(exported, rules)
    assert tapped is exported
    assert [(tap.op_target, tap.reducer_name) for tap in taps] == [
        ("aten.relu.default", "FULL_TENSOR"),
        ("aten.linear.default", "STATS"),
    ]
    assert len(find_tap_nodes(tapped.graph_module)) == 2
    torch.testing.assert_close(tapped.module()(X)[1], model(X))


def test_rules_that_select_nothing(model: torch.nn.Module) -> None:
    exported = torch.export.export(model, (X,))
    rule = TapRule(select_by_op_type("aten.sin.default"))
    with pytest.raises(ExportError, match="selects no call"):
        tap_intermediate_outputs(exported, rule)
    assert tap_intermediate_outputs(exported, rule, error_on_empty=False) == (exported, [])


def test_taps_are_stripped_in_either_spelling(model: torch.nn.Module) -> None:
    for lower in (rl.to_edge, to_edge):
        rule = (select_by_op_type("aten.relu.default"), "STATS")
        tapped, [tap] = tap_intermediate_outputs(torch.export.export(model, (X,)), rule)
        edge = lower(tapped)
        [source] = [n.args[0].name for n in find_tap_nodes(edge.exported_program().graph_module)]
        strip_taps(edge)
        program = edge.exported_program()
        assert find_tap_nodes(program.graph_module) == []
        assert source in [node.name for node in program.graph.nodes]
        torch.testing.assert_close(program.module()(X)[tap.output_index], STATS.eager(model(X)))
        strip_taps(edge)
        assert edge.exported_program() is program


def test_taps_of_rules_are_compared_with_eager(model: torch.nn.Module) -> None:
    rules = [(select_by_op_type("aten.relu.default"), "FULL_TENSOR"), (lambda node: True, "STATS")]
    frame, taps = tap_compare(model, (X,), rules=rules)
    assert [tap.reducer_name for tap in taps] == ["FULL_TENSOR", "STATS"]
    assert frame.sqnr_db[0] > 100 and frame.aot_max[1] == pytest.approx(frame.rt_max[1])
    nothing = (select_by_op_type("aten.sin.default"), "STATS")
    with pytest.raises(ValueError, match="selects no call"):
        tap_compare(model, (X,), rules=nothing)
    assert tap_compare(model, (X,), rules=nothing, error_on_empty=False)[1] == []


def test_a_reducer_in_executorch_s_form() -> None:
    largest = StatReducer("greatest", ("max",), lambda graph, node: node, lambda v: v.amax()[None])
    assert get_reducer(largest) is largest
    assert float(largest.eager(torch.tensor([1.0, 3.0]))) == 3.0


def test_comparators() -> None:
    wanted, value = np.array([1.0, 2.0]), np.array([1.0, 4.0])
    assert MSEComparator()(wanted, value) == 2.0
    assert L1Comparator()(wanted, value) == 2.0
    assert SNRComparator()(wanted, value) == pytest.approx(10 * np.log10(2.5 / 2))


def test_a_comparator_of_a_backend_changes_values_before() -> None:
    class Halved(NumericalComparatorBase):
        def preprocessing(self, mapping):  # type: ignore[no-untyped-def]
            return {key: (other[0], other[1] / 2) for key, other in mapping.items()}

        def element_compare(self, a: torch.Tensor, b: torch.Tensor) -> float:
            return float((a - b).abs().max())

    assert Halved()(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == 0.0
