"""Graphs as plain data."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rushlight as rl
from rushlight.devtools.operator_graph import (
    EDGE_DIALECT_GRAPH_KEY,
    FXOperatorGraph,
    OperatorNode,
    ValueNode,
    create_debug_handle_to_op_node_mapping,
    gen_graphs_from_etrecord,
)
from rushlight.errors import ExportError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = self.inner(x).split(3, dim=-1)
        return torch.cat([first, second], 1), first.clamp(0.5, None)


def graph_of(**options: bool) -> tuple[torch.fx.GraphModule, FXOperatorGraph]:
    module = torch.export.export(Block(), (torch.ones(2, 4),)).graph_module
    return module, FXOperatorGraph.gen_operator_graph(module, **options)


def test_every_node_is_there_once() -> None:
    module, graph = graph_of()
    inputs, between, outputs = graph.elements
    assert [part.graph_name for part in graph.elements] == ["inputs", "forward", "outputs"]
    shapes = [node.output_shapes for node in inputs.elements]
    assert shapes == [[[6, 4]], [[6]], [[2, 4]]]
    calls = [
        n for n in module.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)
    ]
    found = list(graph.operators())
    assert [node.name for node in found] == [f"{call.name}_" for call in calls]
    assert [node.op for node in found] == [call.target.__name__ for call in calls]
    linear, split, cat, clamp = found
    assert [node.name for node in linear.inputs or ()] == ["x_", "p_inner_weight_", "p_inner_bias_"]
    assert cat.inputs is not None and cat.inputs[:2] == [split, split]
    assert isinstance(cat.inputs[2], ValueNode) and cat.inputs[2].val == "1"
    assert clamp.inputs is not None and [n.name.rpartition("_")[0] for n in clamp.inputs] == [
        "split",
        "min",
    ]
    assert split.output_shapes == [[2, 3], [2, 3]]
    [output] = outputs.elements
    assert output.inputs == [cat, clamp]
    assert "x = " not in str(linear.metadata) and "stack_trace" in (linear.metadata or {})
    assert all(isinstance(node, OperatorNode | ValueNode) for node in between.elements)


def test_stack_traces_can_be_left_out() -> None:
    _, graph = graph_of(skip_stack_trace=True)
    assert all("stack_trace" not in (node.metadata or {}) for node in graph.operators())


def test_calls_by_module() -> None:
    module = torch.export.export(Block(), (torch.ones(2, 4),)).graph_module
    for node in module.graph.nodes:
        if "linear" in node.name:
            node.meta["source_fn_stack"] = [("inner", nn.Linear)]
    graph = FXOperatorGraph.gen_operator_graph(module, enable_module_hierarchy=True)
    inner = graph.elements[1].elements[-1]
    assert (inner.graph_name, inner.metadata) == ("inner", {"module_type": "Linear"})
    assert [node.op for node in inner.elements] == ["linear.default"]
    assert len(list(graph.operators())) == 4


def test_graphs_of_a_record_have_its_handles() -> None:
    captured = torch.export.export(Block(), (torch.ones(2, 4),))
    edge = rl.to_edge(captured, generate_etrecord=True)
    record = edge.to_executorch().get_etrecord()
    record.add_extra_export_modules({"captured": captured})
    graphs = gen_graphs_from_etrecord(record)
    assert set(graphs) == {EDGE_DIALECT_GRAPH_KEY, "captured/forward"}
    by_handle = create_debug_handle_to_op_node_mapping(graphs[EDGE_DIALECT_GRAPH_KEY])
    told = {
        (int(node.meta["debug_handle"]), f"{node.name}_")
        for node in edge.exported_program().graph.nodes
        if "debug_handle" in node.meta and "getitem" not in str(node.target)
    }
    assert {(handle, node.name) for handle, nodes in by_handle.items() for node in nodes} == told
    assert create_debug_handle_to_op_node_mapping(graphs["captured/forward"]) == {}


def test_modules_and_methods_are_refused() -> None:
    with pytest.raises(ExportError, match="node _0 is a call_module: give a graph of functions"):
        FXOperatorGraph.gen_operator_graph(torch.fx.symbolic_trace(nn.Sequential(Block().inner)))
