"""What the passes of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.edge.operators import LEFT_PLAIN, EdgeOpOverload, edge_operator
from rushlight.ir.programs import copy_graph_module


def graphs_in(graph_module: GraphModule) -> Iterator[GraphModule]:
    """A graph, and its branches and bodies."""
    return (m for m in graph_module.modules() if isinstance(m, GraphModule))


class GraphPass(PassBase):
    """A pass that changes one graph after the other, in terms of torch's operators.

    Operators that are spelled as ExecuTorch spells them are so again afterwards, and new ones too.

    Attributes:
        in_place: whether the given module is changed, and not a copy of it.
    """

    in_place = False

    def call(self, graph_module: GraphModule) -> PassResult:
        """Run the pass."""
        result = graph_module if self.in_place else copy_graph_module(graph_module)
        changed = False
        for module in graphs_in(result):
            with torch_operators(module.graph):
                changed = self.change(module.graph) or changed
            module.recompile()
        return PassResult(result, changed)

    def change(self, graph: Graph) -> bool:
        """Change a graph; returns whether anything was."""
        raise NotImplementedError


@contextmanager
def torch_operators(graph: Graph) -> Iterator[None]:
    """While active, a graph calls torch's operators."""
    before: dict[Node, Any] = {
        node: node.target for node in graph.nodes if isinstance(node.target, EdgeOpOverload)
    }
    for node, target in before.items():
        node.target = target._op
    yield
    for node in graph.nodes:
        known, target = before.get(node), node.target
        if known is not None and target is known._op:
            node.target = known
        elif before and isinstance(target, OpOverload) and target not in LEFT_PLAIN:
            node.target = edge_operator(target)
