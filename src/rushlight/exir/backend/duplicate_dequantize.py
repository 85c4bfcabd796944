"""Gives each user of a dequantised value a call of its own that dequantises.

    q -> dequantize -> linear        q -> dequantize   -> linear
                    -> add     ==>     -> dequantize_1 -> add

A partition that takes a call with what dequantises its inputs has then no call in common with
another one.
"""

from __future__ import annotations

from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.exir.backend.nodes import T_DQuantPerTensor
from rushlight.ir.programs import copy_node


class DequantDuplicator:
    """Copies a call that dequantises, each time but the first that it is an argument.

    Args:
        pass_obj: the pass, which has `dequant_map` and `current_node`.

    Attributes:
        duplicated_dequant: whether any was copied.
    """

    def __init__(self, pass_obj: DuplicateDequantNodePass) -> None:
        self.pass_obj = pass_obj
        self.duplicated_dequant = False

    def __call__(self, arg: Any) -> Any:
        """The argument, or the copy in its place."""
        if not isinstance(arg, Node) or arg.target != T_DQuantPerTensor:
            return arg
        seen = self.pass_obj.dequant_map
        if arg not in seen:
            seen[arg] = (arg.args, arg.kwargs, arg.meta)
            return arg
        with arg.graph.inserting_before(self.pass_obj.current_node):
            self.duplicated_dequant = True
            return copy_node(arg.graph, arg, _Same())


class _Same(dict[Node, Node]):
    """Maps each node to itself."""

    def __missing__(self, node: Node) -> Node:
        return node


class DuplicateDequantNodePass(PassBase):
    """Copies what dequantises whole tensors for each user but the first.

    Attributes:
        dequant_map: what was met before: {call: (arguments, keyword arguments, metadata)}.
        current_node: the call whose arguments are looked at.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dequant_map: dict[Node, tuple[Any, Any, Any]] = {}
        self.current_node: Node | None = None

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph."""
        duplicator = DequantDuplicator(self)
        for node in list(graph_module.graph.nodes):
            if node.op != "call_function":
                continue
            self.current_node = node
            node.args = map_aggregate(node.args, duplicator)
            node.kwargs = map_aggregate(node.kwargs, duplicator)
        graph_module.recompile()
        return PassResult(graph_module, duplicator.duplicated_dequant)
