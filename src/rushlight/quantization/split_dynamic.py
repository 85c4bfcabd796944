"""Gives each user of dynamically quantised values a quantisation of its own.

A partitioner that takes one user of a dequantised tensor with the calls that quantise it would
otherwise leave the other users without theirs. Our own partitioners need no such copies.
"""

from __future__ import annotations

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.ir.quantized_values import chosen_of


class DuplicateDynamicQuantChainPass(PassBase):
    """Copies the calls that choose scales, quantise and dequantise, for each user but the first."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        for node in list(graph_module.graph.nodes):
            chosen = chosen_of(node)
            if chosen is None:
                continue
            for user in list(node.users)[1:]:
                _give(user, node, chosen.calls)
                modified = True
        graph_module.recompile()
        return PassResult(graph_module, modified)


def _give(user: Node, node: Node, calls: tuple[Node, ...]) -> None:
    """Replaces `node` among the inputs of `user` by a copy of all calls that make it."""
    copies: dict[Node, Node] = {}
    with user.graph.inserting_before(user):
        for call in calls:
            copies[call] = user.graph.node_copy(call, lambda one: copies.get(one, one))
    user.replace_input_with(node, copies[node])
