"""Questions about nodes that partitioners ask."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import torch.ao.quantization.fx._decomposed  # noqa: F401  (its operators)
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from rushlight.edge.operators import ops

Function = TypeVar("Function", bound=Callable[..., Any])
T_QuantPerTensor = ops.edge.quantized_decomposed.quantize_per_tensor.default
T_DQuantPerTensor = ops.edge.quantized_decomposed.dequantize_per_tensor.default
_OWNED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def enforcedmethod(func: Function) -> Function:
    """Marks a method that each backend or partitioner has its own of."""
    func.__enforcedmethod__ = True  # type: ignore[attr-defined]
    return func


def is_constant_data(ep: ExportedProgram, node: Node) -> bool:
    """Whether a node stands for a parameter, a buffer or a constant of the program."""
    return node.op == "placeholder" and any(
        spec.kind in _OWNED and getattr(spec.arg, "name", None) == node.name
        for spec in ep.graph_signature.input_specs
    )


def is_non_tensor_placeholder(node: Node, ep: ExportedProgram) -> bool:
    """Whether a node is an input, and not a parameter, a buffer or a constant of the program."""
    return node.op == "placeholder" and not is_constant_data(ep, node)


def is_same_node(node_left: Node | Iterable[Node], node_right: Node | Iterable[Node]) -> bool:
    """Whether two nodes, or two lists of them, are computed alike.

    Nodes are alike if their operators or names of inputs are, and all the nodes that they are
    computed of. Arguments that are no nodes are not compared.
    """
    alike: set[tuple[Node, Node]] = set()
    todo: list[tuple[Any, Any]] = [(node_left, node_right)]
    while todo:
        left, right = todo.pop()
        if isinstance(left, Node) and isinstance(right, Node):
            if (left, right) in alike:
                continue
            alike.add((left, right))
            if (left.op, left.target) != (right.op, right.target):
                return False
            left, right = left.all_input_nodes, right.all_input_nodes
        elif isinstance(left, Node) or isinstance(right, Node):
            return False
        left, right = list(left), list(right)
        if len(left) != len(right):
            return False
        todo.extend(zip(left, right, strict=True))
    return True


class DSJ:
    """Disjoint sets, which are merged two at a time.

    Attributes:
        parent: another element of the same set for each element; its own for one of each set.
    """

    def __init__(self) -> None:
        self.parent: dict[Hashable, Hashable] = {}

    def find(self, x: Any) -> Any:
        """The element that stands for the set of `x`; `x` becomes a set of its own if it is new."""
        self.parent.setdefault(x, x)
        path = []
        while self.parent[x] != x:
            path.append(x)
            x = self.parent[x]
        self.parent.update(dict.fromkeys(path, x))
        return x

    def union(self, x: Any, y: Any) -> None:
        """Merge the sets of two elements."""
        self.parent[self.find(x)] = self.find(y)

    def contains(self, x: Any) -> bool:
        """Whether an element is in any set."""
        return x in self.parent

    def gen_groups(self) -> list[list[Any]]:
        """The sets, as lists, in the order in which their first elements were added."""
        groups: dict[Any, list[Any]] = {}
        for element in list(self.parent):
            groups.setdefault(self.find(element), []).append(element)
        return list(groups.values())
