"""A graph whose constants get ExecuTorch's specs as they are added."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from rushlight.exir.specs import TensorSpec


class ExportGraph:
    """A graph of FX; a `get_attr` node of a buffer or parameter gets its spec.

    Attributes:
        owning_module: the module that holds the graph's tensors.
    """

    def __init__(self, owning_module: GraphModule, graph: Graph) -> None:
        self.owning_module = owning_module
        self._graph = graph

    @property
    def nodes(self) -> Any:
        """The nodes."""
        return self._graph.nodes

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        self._graph.erase_node(to_erase)

    def inserting_before(self, n: Node | None = None) -> Any:
        """A `with` block whose new nodes come before `n`; None: the graph's first."""
        return self._graph.inserting_before(n)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node for a tensor or module of the owner."""
        node = self._graph.get_attr(qualified_name, type_expr)
        held: Any = self.owning_module
        for name in qualified_name.split("."):
            held = getattr(held, name, None)
        if isinstance(held, torch.Tensor):
            node.meta["spec"] = TensorSpec.from_tensor(held, const=True)
        return node
