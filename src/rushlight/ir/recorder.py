"""The values of all nodes of a graph in one run."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree


class Recorder(Interpreter):
    """Runs a graph and keeps the value of every node.

    Args:
        module: the graph.
        copies: whether values are copied when they are computed, for graphs that write in place.

    Attributes:
        values: by the name of the node, after a run.
    """

    def __init__(self, module: GraphModule, *, copies: bool = True) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._copies = copies
        self.values: dict[str, Any] = {}

    def run_node(self, n: Node) -> Any:
        """The value of a node, which is kept."""
        value = super().run_node(n)
        self.values[n.name] = pytree.tree_map(_copy, value) if self._copies else value
        return value


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
