"""Remove transposes and permutes that undo each other, with calls that quantise between them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import torch.ao.quantization.fx._decomposed  # noqa: F401  (its operators)
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.operators import EdgeOpOverloadPacket, ops
from rushlight.exir.transforms.bases import FuseOpPairsAcrossBranchesPass
from rushlight.exir.transforms.layout.orders import VIEW, order_of, reordered, size_arguments

_q = ops.edge.quantized_decomposed
_PACKETS = frozenset((ops.edge.aten.transpose_copy, ops.edge.aten.permute_copy))


class FuseTransposeOrPermuteOpPairsPass(FuseOpPairsAcrossBranchesPass):
    """Replaces a transpose or permute, and those that undo it, by views.

    Dimensions of size 1 do not count: moving them moves no element.

    Attributes:
        bypass_ops: operators that may stand between both; subclasses may add theirs.
    """

    bypass_ops: ClassVar[set[Any]] = {
        _q.quantize_per_tensor.default,
        _q.quantize_per_channel.default,
        _q.dequantize_per_tensor.default,
        _q.dequantize_per_channel.default,
    }

    def can_fuse_for_chain(
        self, producer: Node, consumer: Node, consumer_op_packets: Collection[EdgeOpOverloadPacket]
    ) -> bool:
        """Whether both together leave the dimensions in order, but for those of size 1."""
        if not super().can_fuse_for_chain(producer, consumer, consumer_op_packets):
            return False
        source: Any = producer.args[0]
        sizes = source.meta["val"].shape
        moved = [d for d in _order(producer, consumer) if not _is_one(sizes[d])]
        return moved == sorted(moved)

    def get_fused_node(self, producer: Node, consumer: Node, graph_module: GraphModule) -> Node:
        """A view of the consumer's input, with the consumer's sizes."""
        source: Any = producer.args[0]
        sizes = size_arguments(source, _order(producer, consumer), consumer)
        with graph_module.graph.inserting_before(consumer):
            view = graph_module.graph.call_function(VIEW, (consumer.args[0], sizes))
        view.meta = {k: v for k, v in consumer.meta.items() if k != "val"}
        return view

    def call(self, graph_module: GraphModule) -> PassResult:
        """Fuse all pairs of the graph, in place."""
        modified = self.find_and_fuse(graph_module, _PACKETS, _PACKETS, self.bypass_ops)
        return PassResult(graph_module, modified)


def _order(producer: Node, consumer: Node) -> list[int]:
    return reordered(consumer, order_of(producer))


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1
