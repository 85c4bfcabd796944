"""What partitioners and backends are written with: graphs keep what eager computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule
from torch.fx.passes.utils.source_matcher_utils import get_source_partitions

from rushlight.errors import ExportError
from rushlight.exir.backend.duplicate_dequantize import DuplicateDequantNodePass
from rushlight.exir.backend.lower_submodules import (
    lower_all_submodules_to_backend,
    remove_used_metadata,
)
from rushlight.exir.backend.nodes import (
    DSJ,
    T_DQuantPerTensor,
    T_QuantPerTensor,
    enforcedmethod,
    is_constant_data,
    is_non_tensor_placeholder,
    is_same_node,
)
from rushlight.exir.backend.quantized_partition import replace_quantized_partition_with_op
from rushlight.exir.backend.submodule_programs import create_exported_program_from_submodule
from rushlight.exir.graph_passes.submodules import create_submodule_from_nodes
from rushlight.exir.manager import to_edge
from rushlight.partition import BackendDetails, PreprocessResult

q = torch.ops.quantized_decomposed
aten = torch.ops.aten
SCALE = (0.1, 3, -128, 127, torch.int8)


class NothingBackend(BackendDetails):
    """Has no runtime: lowered modules are run in eager."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        names = [node.name for node in edge_program.graph.nodes]
        return PreprocessResult(",".join(names).encode())


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(4.0).reshape(2, 2))
        self.register_buffer("total", torch.zeros(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)  # type: ignore[operator]
        return torch.mm(x, self.weight) * self.total + x


@pytest.fixture
def edge() -> Any:
    program = torch.export.export(Counting(), (torch.ones(2, 2),))
    return to_edge(program).exported_program()


def part_of(program: Any, names: set[str], owned: set[str]) -> Any:
    """Moves nodes into a submodule, and says what it has."""
    spelled = {node.name: node for node in program.graph.nodes}
    for name in names | owned:
        spelled[name].meta["delegation_tag"] = "tag0"
    module = program.graph_module
    inner, call = create_submodule_from_nodes(module, [spelled[n] for n in names], "tag0")
    made, inputs, outputs = create_exported_program_from_submodule(
        inner, program, "tag0", call, False
    )
    call.meta.update(
        submodule_program=made,
        toplevel_input_specs_to_delete=inputs,
        toplevel_output_specs_to_delete=outputs,
        compile_spec=[],
        is_submodule=False,
    )
    return call


@pytest.mark.parametrize("owned", [set(), {"p_weight"}, {"p_weight", "b_total"}])
def test_submodules_are_lowered_by_hand(edge: Any, owned: set[str]) -> None:
    calls = {n.name for n in edge.graph.nodes if n.op == "call_function"}
    left = next(
        n.name
        for n in edge.graph.nodes
        if n.target == aten.add.Tensor and "x" in str(n.args[1]) and "mul" in str(n.args[0])
    )
    call = part_of(edge, calls - {left}, owned)
    part = call.meta["submodule_program"]
    signature = part.graph_signature
    assert set(signature.inputs_to_parameters) | set(signature.inputs_to_buffers) == owned
    assert bool(signature.buffers_to_mutate) == ("b_total" in owned)
    lower_all_submodules_to_backend("NothingBackend", {"forward": [call]}, {"forward": edge})
    remove_used_metadata(edge.graph)
    assert not any("delegation_tag" in node.meta for node in edge.graph.nodes)
    assert not owned & {spec.arg.name for spec in edge.graph_signature.input_specs}
    module, eager = edge.module(), Counting()
    for step in (1.0, 2.0):
        x = torch.full((2, 2), step)
        torch.testing.assert_close(module(x), eager(x))


def test_a_buffer_that_is_returned_too_is_refused() -> None:
    class Returned(Counting):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)  # type: ignore[operator]
            return self.total  # type: ignore[return-value]

    program = to_edge(torch.export.export(Returned(), (torch.ones(2, 2),))).exported_program()
    returned = program.graph.output_node().args[0]
    with pytest.raises(ExportError, match="also another output"):
        part_of(program, {returned[0].name}, {"b_total"})


def test_constants_and_inputs_are_told_apart(edge: Any) -> None:
    inputs = edge.graph.find_nodes(op="placeholder")
    assert [is_constant_data(edge, node) for node in inputs] == [True, True, False]
    assert [is_non_tensor_placeholder(node, edge) for node in inputs] == [False, False, True]
    assert not is_non_tensor_placeholder(edge.graph.output_node(), edge)


def doubled(times: int) -> GraphModule:
    graph = Graph()
    value = graph.placeholder("x")
    for _ in range(times):
        value = graph.call_function(torch.add, (value, value))
    graph.output(value)
    return GraphModule({}, graph)


def test_nodes_are_compared_with_all_that_they_are_computed_of() -> None:
    one, same, longer = (list(doubled(n).graph.nodes) for n in (60, 60, 61))
    assert is_same_node(one[-1], same[-1])  # in linear time: there are 2**60 paths
    assert not is_same_node(one[-1], longer[-1])
    assert is_same_node(one[:3], iter(same[:3]))
    assert not is_same_node(one[:3], same[:2])
    assert not is_same_node(one[0], same[:1])


def test_sets_are_merged() -> None:
    sets = DSJ()
    for pair in ("ab", "cd", "bc", "ef"):
        sets.union(*pair)
    sets.find("g")
    assert [sorted(group) for group in sets.gen_groups()] == [[*"abcd"], [*"ef"], ["g"]]
    assert sets.contains("a") and not sets.contains("z")
    assert sets.find("a") == sets.find("d") != sets.find("e")


def test_a_method_is_marked() -> None:
    @enforcedmethod
    def preprocess() -> None: ...

    assert vars(preprocess)["__enforcedmethod__"] is True


class Shared(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        whole = q.dequantize_per_tensor(q.quantize_per_tensor(x, *SCALE), *SCALE)
        return torch.cat([whole, whole + whole, whole.relu()])


def test_each_user_has_its_own_dequantisation() -> None:
    x = torch.randn(3, 4)
    module = torch.export.export(Shared(), (x,)).module()
    wanted = module(x)
    result = DuplicateDequantNodePass()(module)
    assert result is not None and result.modified
    found = result.graph_module.graph.find_nodes(
        op="call_function", target=q.dequantize_per_tensor.default
    )
    assert [len(node.users) for node in found] == [1] * 4
    torch.testing.assert_close(result.graph_module(x), wanted)
    again = DuplicateDequantNodePass()(module)
    assert again is not None and not again.modified


@pytest.fixture
def fused() -> Iterator[Any]:
    with torch.library._scoped_library("rushlight_test_fused", "DEF") as library:
        library.define("linear(Tensor x, Tensor w, Tensor b) -> Tensor")
        library.impl("linear", fused_linear, "CompositeExplicitAutograd")
        yield torch.ops.rushlight_test_fused.linear.default


def fused_linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.nn.functional.linear(q.dequantize_per_tensor(x, *SCALE), w, b)
    return q.quantize_per_tensor(out, *SCALE)


class QuantisedLinear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = q.dequantize_per_tensor(q.quantize_per_tensor(x, *SCALE), *SCALE)
        return q.dequantize_per_tensor(q.quantize_per_tensor(self.linear(x), *SCALE), *SCALE)


def test_a_quantised_module_becomes_one_call(fused: Any) -> None:
    x = torch.randn(2, 4)
    module = torch.export.export(QuantisedLinear(), (x,)).module()
    wanted = module(x)
    (partition,) = get_source_partitions(module.graph, [torch.nn.Linear])[torch.nn.Linear]
    call, dequantise, quantise = replace_quantized_partition_with_op(module, partition, fused)
    assert [n.target for n in dequantise + quantise] == [T_DQuantPerTensor, T_QuantPerTensor]
    assert [n.target for n in module.graph.nodes if n.op == "call_function"].count(fused) == 1
    assert not module.graph.find_nodes(op="call_function", target=aten.linear.default)
    assert call.meta["val"].dtype == torch.int8
    torch.testing.assert_close(module(x), wanted)


def test_a_module_that_is_not_quantised_is_refused(fused: Any) -> None:
    module = torch.export.export(torch.nn.Linear(4, 3), (torch.randn(2, 4),)).module()
    (partition,) = get_source_partitions(module.graph, [torch.nn.Linear])[torch.nn.Linear]
    with pytest.raises(ExportError, match=r"linear.*no dequantize_per_tensor\.default"):
        replace_quantized_partition_with_op(module, partition, fused)
