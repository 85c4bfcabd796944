"""Classes to derive passes from that change calls one by one, or in pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge import ExportPass
from rushlight.edge.operators import EdgeOpOverloadPacket
from rushlight.exir.transforms.arguments import get_edge_overload_packet
from rushlight.exir.transforms.refresh import outdate, refresh


class HierarchicalInplacePassInterface(ExportPass):
    """A pass that changes the graphs of a module and of all modules in it."""

    @abstractmethod
    def _apply_flat_inplace(self, graph_module: GraphModule) -> bool:
        """Change one graph; returns whether anything changed."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change all graphs in place, and compute the example values that follow."""
        modified = False
        for module in graph_module.modules():
            if isinstance(module, GraphModule) and self._apply_flat_inplace(module):
                refresh(module)
                modified = True
        return PassResult(graph_module, modified)


class RemoveOrReplacePassInterface(HierarchicalInplacePassInterface):
    """A pass that looks at each call of some operators."""

    @property
    @abstractmethod
    def targets(self) -> list[Any]:
        """The operators whose calls are looked at."""

    @abstractmethod
    def maybe_remove_or_replace(self, node: Node) -> bool:
        """Change the graph around a call; returns whether anything changed."""

    def _apply_flat_inplace(self, graph_module: GraphModule) -> bool:
        changed = False
        for target in self.targets:
            for node in graph_module.graph.find_nodes(op="call_function", target=target):
                if node.users:
                    changed |= self.maybe_remove_or_replace(node)
        return changed


class FuseOpPairsAcrossBranchesPass(ExportPass):
    """A pass over calls (producers) all of whose users are calls that undo them (consumers)."""

    def check_ok_to_fuse(self, producer: Node, consumers: list[Node]) -> bool:
        """Whether a producer and its consumers may be fused; to be overridden."""
        return True

    def can_fuse_for_chain(
        self, producer: Node, consumer: Node, consumer_op_packets: Collection[EdgeOpOverloadPacket]
    ) -> bool:
        """Whether a consumer undoes a producer: here, whether it calls one of the operators."""
        return _is_of(consumer, consumer_op_packets)

    def get_fuse_candidates(
        self,
        producer: Node,
        consumer_op_packets: Collection[EdgeOpOverloadPacket],
        bypass_ops: Collection[Any],
    ) -> list[Node]:
        """The consumers of a producer, behind calls of `bypass_ops`; [] if it has other users."""
        pending, consumers = list(producer.users), []
        while pending:
            user = pending.pop(0)
            if user.target in bypass_ops:
                pending.extend(user.users)
            elif self.can_fuse_for_chain(producer, user, consumer_op_packets):
                consumers.append(user)
            else:
                return []
        return consumers

    def find_and_fuse(
        self,
        graph_module: GraphModule,
        producer_op_packets: Collection[EdgeOpOverloadPacket],
        consumer_op_packets: Collection[EdgeOpOverloadPacket],
        bypass_ops: Collection[Any],
    ) -> bool:
        """Fuse all pairs of a graph in place; returns whether there was one."""
        modified = False
        for node in list(graph_module.graph.nodes):
            if not _is_of(node, producer_op_packets) or not node.users:
                continue
            consumers = self.get_fuse_candidates(node, consumer_op_packets, bypass_ops)
            if consumers and self.check_ok_to_fuse(node, consumers):
                self.fuse(node, consumers, graph_module)
                modified = True
        if modified:
            refresh(graph_module)
        return modified

    def get_fused_node(self, producer: Node, consumer: Node, graph_module: GraphModule) -> Node:
        """What the users of a consumer are given; to be overridden."""
        return consumer

    def fuse(
        self, node: Node, removal_candidates: Sequence[Node], graph_module: GraphModule
    ) -> None:
        """Take a producer and its consumers out of the graph."""
        source: Any = node.args[0]
        pending = [user for user in node.users if user not in removal_candidates]
        for user in pending:  # between both, values no longer have the producer's layout
            outdate(user)
            pending.extend(one for one in user.users if one not in removal_candidates)
        node.replace_all_uses_with(source)
        for consumer in removal_candidates:
            fused = self.get_fused_node(node, consumer, graph_module)
            consumer.replace_all_uses_with(fused)
            graph_module.graph.erase_node(consumer)
        graph_module.graph.erase_node(node)


def _is_of(node: Node, packets: Collection[EdgeOpOverloadPacket]) -> bool:
    target = node.target
    return isinstance(target, OpOverload) and get_edge_overload_packet(target) in packets
