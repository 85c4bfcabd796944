"""Gives each user of dynamically quantised values a quantisation of its own.

A partitioner that takes one user of a dequantised tensor with the calls that quantise it would
otherwise leave the other users without theirs. Our own partitioners need no such copies.
"""

from __future__ import annotations

from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.ir.quantized_values import chosen_of


class DuplicateDynamicQuantChainPass(PassBase):
    """Copies the calls that choose scales, quantise and dequantise, for each user but the first.

    Users share them where they read one dequantised tensor, and where they read several that are
    dequantised from the same integers.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph in place."""
        modified = False
        taken: set[Node] = set()  # the calls that choose scales, which have a user of their own
        for node in list(graph_module.graph.nodes):
            chosen = chosen_of(node)
            if chosen is None:
                continue
            users = list(node.users)
            for user in users if chosen.calls[0] in taken else users[1:]:
                _give(user, node, chosen.calls)
                modified = True
            taken.add(chosen.calls[0])
            if users and not node.users:
                graph_module.graph.erase_node(node)
        graph_module.recompile()
        return PassResult(graph_module, modified)


def _give(user: Node, node: Node, calls: tuple[Node, ...]) -> None:
    """Replaces `node` among the inputs of `user` by a copy of all calls that make it."""
    copies: dict[Node, Node] = {}
    with user.graph.inserting_before(user):
        for call in calls:
            copies[call] = user.graph.node_copy(call, lambda one: copies.get(one, one))
    user.replace_input_with(node, copies[node])
