"""Matchers find resizing and attention in Edge graphs by the graphs of these patterns."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

from rushlight.errors import ExportError
from rushlight.exir.manager import to_edge
from rushlight.exir.placeholders import get_tensor_name
from rushlight.exir.xnnpack.nodes import (
    check_or_raise,
    get_relu_fused_node,
    get_source_fn,
    is_getitem,
)
from rushlight.exir.xnnpack.patterns import attention_graphs, resizing, resizing_graphs


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)).max(-1)[0]


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.scaled_dot_product_attention(q, k, k.sin(), attn_mask=mask)
        return x.cos()


X = (torch.randn(2, 8),)


def test_attention_in_a_model_is_matched() -> None:
    q = torch.randn(8, 16, 32, 64)
    edge = to_edge(torch.export.export(Attention(), (q, q.clone(), torch.randn(32, 32))))
    pattern, _ = attention_graphs()
    matcher = SubgraphMatcher(pattern.graph, match_output=False, ignore_literals=True)
    [match] = matcher.match(edge.exported_program().graph)
    assert match.returning_nodes[0].meta["val"].shape == q.shape


def test_each_resizing_graph_has_its_align_corners() -> None:
    assert len(resizing()) == len(resizing_graphs()) == 4
    for graph, align_corners in resizing().items():
        [call] = [n for n in graph.graph.nodes if n.op == "call_function"]
        assert call.args[2] is align_corners


def test_neighbours_of_nodes() -> None:
    program = torch.export.export(Model(), X)
    edge = to_edge(program).exported_program()
    relus = [n for n in edge.graph.nodes if n.target == torch.ops.aten.relu.default]
    assert [get_relu_fused_node(n.args[0]) for n in relus] == relus
    taken = [n for n in edge.graph.nodes if is_getitem(n)]
    assert taken and all(n.target is operator.getitem for n in taken)
    assert get_source_fn(taken[0]) is None
    taken[0].meta["source_fn_stack"] = [("a", torch.nn.Linear), ("b", torch.add)]
    assert get_source_fn(taken[0]) is torch.add
    weight = next(n for n in program.graph.nodes if n.target == "p_layer_weight")
    assert get_tensor_name(program, weight) == "layer.weight"
    assert get_tensor_name(program, None) == ""
    with pytest.raises(ExportError, match="no name in a program"):
        get_tensor_name(edge, taken[0])


def test_a_condition_that_does_not_hold_raises() -> None:
    check_or_raise(True, "never")
    with pytest.raises(RuntimeError, match="rank 4"):
        check_or_raise(False, "images have rank 4")
