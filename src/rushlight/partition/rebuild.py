"""Rebuilds a graph with its partitions replaced by calls of their lowered modules."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Mapping
from typing import Any

from torch._higher_order_ops.executorch_call_delegate import executorch_call_delegate
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from rushlight.ir.branches import attribute
from rushlight.ir.programs import copy_node, make_module
from rushlight.ir.rewrite import KEPT_META
from rushlight.partition.extract import Part
from rushlight.partition.lowered import LoweredBackendModule
from rushlight.partition.regions import Region, Unit

Lowered = Mapping[Region, tuple[Part, LoweredBackendModule]]


def rebuild(
    module: GraphModule,
    order: list[Unit],
    lowered: Lowered,
    inner: Mapping[GraphModule, GraphModule],
    dropped: set[Node],
    returned: Any,
) -> GraphModule:
    """A new graph in which every partition is one call.

    Args:
        module: the graph; not changed.
        order: its nodes and partitions, in the order in the new graph.
        lowered: the extracted program and the lowered module of each partition.
        inner: the new graphs of branches of control flow, by the old ones.
        dropped: data nodes that only delegates use from now on.
        returned: the results of the new graph, as nodes of the old graph.
    """
    writer = _Writer(module, lowered, inner)
    for unit in order:
        if isinstance(unit, Region):
            writer.call(unit)
        elif unit.op == "output":
            writer.output(unit, returned)
        elif unit not in dropped:
            writer.copy(unit)
    return make_module(writer.held, writer.graph, module)


class _Writer:
    """Writes the new graph."""

    def __init__(
        self, module: GraphModule, lowered: Lowered, inner: Mapping[GraphModule, GraphModule]
    ) -> None:
        self.graph = Graph()
        self.held: dict[str, Any] = {}
        self._lowered, self._inner = lowered, inner
        self._moved = {n for region in lowered for n in region.nodes}
        self._passed = {n for part, _ in lowered.values() for n in part.inputs}
        self._taken = {str(n.target) for n in module.graph.nodes if n.op == "get_attr"}
        self._numbers = itertools.count()
        self._env: dict[Node, Node] = {}

    def copy(self, node: Node) -> None:
        if node.op == "get_attr":
            if node not in self._passed and self._moved.issuperset(node.users):
                return  # it is in the same partitions as its users
            original = attribute(node)
            new = (
                self._inner.get(original, original)
                if isinstance(original, GraphModule)
                else original
            )
            self.held[str(node.target)] = new
        self._env[node] = copy_node(self.graph, node, self._env)

    def call(self, region: Region) -> None:
        part, module = self._lowered[region]
        first = region.nodes[0]
        kept = {k: first.meta[k] for k in KEPT_META if k in first.meta}
        attr = self.graph.get_attr(self._hold(module))
        args = (attr, *(self._env[n] for n in part.inputs))
        call = self.graph.call_function(executorch_call_delegate, args)
        attr.meta.update(kept)
        call.meta.update(kept)
        call.meta["val"] = [n.meta["val"] for n in part.outputs]
        for i, node in enumerate(part.outputs):
            result = self.graph.call_function(operator.getitem, (call, i))
            result.meta.update({k: node.meta[k] for k in (*KEPT_META, "val") if k in node.meta})
            self._env[node] = result

    def _hold(self, module: LoweredBackendModule) -> str:
        name = next(n for i in self._numbers if (n := f"lowered_module_{i}") not in self._taken)
        self.held[name] = module
        return name

    def output(self, node: Node, returned: Any) -> None:
        new = self.graph.output(map_arg(returned, lambda n: self._env[n]))
        new.meta.update(copy.copy(node.meta))
