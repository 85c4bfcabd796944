"""Eager products with large weights, some of their rows at a time.

A graph widens or dequantises a weight and multiplies by it. The whole weight in float32 is several
times the memory that the model takes, and that of an output layer is the largest of all.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from rushlight.capture.mutations import written_values
from rushlight.ir.mapped_weights import were_read

MANY = 1 << 20  # elements of a weight that are computed at a time
_BY_ROWS = (
    "quantized_decomposed.dequantize_per_channel_group.default",
    "aten.to.dtype",
    "aten._to_copy.default",
)
_LINEAR = torch.ops.aten.linear.default


class RowInterpreter(Interpreter):
    """Runs a graph; large weights of products are made as their rows are multiplied.

    Args:
        module: the graph; its weights are the module's, or inputs.
        garbage_collect_values: as `torch.fx.Interpreter` has it.
    """

    def __init__(self, module: GraphModule, garbage_collect_values: bool = True) -> None:
        super().__init__(module, garbage_collect_values)
        self._in_rows = _made_in_rows(module.graph)

    def run_node(self, n: Node) -> Any:
        """The value of a node, or what makes its rows."""
        if n in self._in_rows:
            return _Rows(n.target, *self.fetch_args_kwargs_from_env(n))
        if n.target is _LINEAR and n.args[1] in self._in_rows:
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return _product(*args, **kwargs)
        value = super().run_node(n)
        read = (self.env.get(one) for one in n.all_input_nodes)
        were_read(sum(one.nbytes for one in read if isinstance(one, torch.Tensor)))
        return value


class _Rows:
    """A weight that is not made yet: a call whose rows depend on the same rows of its arguments."""

    def __init__(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._call, self._args, self._kwargs = call, args, kwargs
        self.shape: torch.Size = args[0].shape

    def __getitem__(self, rows: slice) -> torch.Tensor:
        source = self._args[0][rows]
        rest = (
            one[rows] if isinstance(one, torch.Tensor) and len(one) == self.shape[0] else one
            for one in self._args[1:]
        )
        made: torch.Tensor = self._call(source, *rest, **self._kwargs)
        return made


def _product(x: torch.Tensor, weight: _Rows, bias: torch.Tensor | None = None) -> torch.Tensor:
    count = max(MANY // max(weight.shape[1], 1), 1)
    # Made first: a result that is kept behind each part's rows would keep their memory in use.
    result = x.new_empty(*x.shape[:-1], weight.shape[0])
    for first in range(0, weight.shape[0], count):
        rows = slice(first, first + count)
        result[..., rows] = _LINEAR(x, weight[rows], None if bias is None else bias[rows])
        were_read()
    return result


def _made_in_rows(graph: Graph) -> set[Node]:
    """The calls that make large weights of products, and nothing else."""
    made_in_rows: set[Node] = set()
    written = {base for _, base in written_values(graph)}
    for node in reversed(graph.nodes):
        value = node.meta.get("val")
        if not _is_by_rows(node) or not isinstance(value, torch.Tensor) or value.dim() != 2:
            continue
        # Not a comparison of sizes as numbers: a dynamic one would get a guard from it.
        if (
            statically_known_true(value.numel() > MANY)
            and written.isdisjoint(node.all_input_nodes)  # rows are read when they are multiplied
            and node.users
            and all(_takes_rows(u, node, made_in_rows) for u in node.users)
        ):
            made_in_rows.add(node)
    return made_in_rows


def _takes_rows(user: Node, node: Node, made_in_rows: set[Node]) -> bool:
    if user in made_in_rows:
        return user.args[0] is node and user.all_input_nodes.count(node) == 1
    return user.target is _LINEAR and user.args[1] is node and user.args[0] is not node


def _is_by_rows(node: Node) -> bool:
    name = str(node.target)  # libraries define some of these only when they are imported
    if name == "quantized_decomposed.dequantize_per_channel.default":
        return bool(node.args[3] == 0)
    return name in _BY_ROWS
