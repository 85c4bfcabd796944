"""`OperatorGraph`: a graph of torch.fx as plain data, for programs that draw or compare it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from rushlight.errors import Code, ExportError
from rushlight.ir.alloc import alloc

if TYPE_CHECKING:
    from rushlight.record.etrecord import ETRecord

EDGE_DIALECT_GRAPH_KEY = "edge_dialect_graph_module"
"""The name of the Edge program among the graphs of a record."""


class MetadataKey(StrEnum):
    """What `Node.metadata` may have."""

    DEBUG_HANDLE = "debug_handle"
    MODULE_STACK = "nn_module_stack"
    STACK_TRACE = "stack_trace"


@dataclass
class Node:
    """A node of a graph.

    Attributes:
        name: unique in its graph.
        inputs: the nodes that it uses, in the order of its arguments.
        output_shapes: the sizes of its tensors.
        metadata: its debug handle, modules and stack trace, by `MetadataKey`.
        named_args: the names of its operator's arguments.
    """

    name: str
    inputs: list[Any] | None = None
    output_shapes: list[list[Any]] | None = None
    metadata: dict[str, Any] | None = None
    named_args: list[str] | None = None


@dataclass
class ValueNode(Node):
    """An input, an output, or a constant argument.

    Attributes:
        dtype: the dtypes of its tensors, as text; "" if it has none.
        val: a constant's value.
    """

    dtype: str = ""
    val: Any = None


@dataclass
class OperatorNode(Node):
    """A call.

    Attributes:
        op: the operator's name.
    """

    op: str | None = None


@dataclass
class OperatorGraph:
    """Nodes, and graphs of nodes.

    Attributes:
        graph_name: what they have in common.
        elements: the nodes in order, and then graphs.
        metadata: of a module, "module_type".
    """

    graph_name: str
    elements: list[Any]
    metadata: dict[str, Any] | None = None

    def operators(self) -> Iterator[OperatorNode]:
        """All calls, those in graphs inside included."""
        for element in self.elements:
            if isinstance(element, OperatorGraph):
                yield from element.operators()
            elif isinstance(element, OperatorNode):
                yield element


class FXOperatorGraph(OperatorGraph):
    """The graph of a `GraphModule`."""

    @staticmethod
    def gen_operator_graph(
        model: GraphModule, skip_stack_trace: bool = False, enable_module_hierarchy: bool = False
    ) -> FXOperatorGraph:
        """The graph "base" of the graphs "inputs", "forward" and "outputs".

        Args:
            model: a graph of calls of functions, not of modules or methods.
            skip_stack_trace: leave stack traces out.
            enable_module_hierarchy: put the calls of each module into a graph of its name, inside
                "forward".

        Raises:
            ExportError: it calls a module or a method.
        """
        reader = _Reader(skip_stack_trace)
        for node in model.graph.nodes:
            reader.read(node, enable_module_hierarchy)
        modules = [
            OperatorGraph(name, nodes, {"module_type": kind})
            for (name, kind), nodes in reader.modules.items()
        ]
        parts = (
            ("inputs", reader.inputs),
            ("forward", [*reader.between, *modules]),
            ("outputs", reader.outputs),
        )
        return FXOperatorGraph("base", [FXOperatorGraph(name, nodes) for name, nodes in parts])


class _Reader:
    """Reads the nodes of a graph in order."""

    def __init__(self, without_traces: bool) -> None:
        self._keys = [
            key for key in MetadataKey if key != MetadataKey.STACK_TRACE or not without_traces
        ]
        self._nodes: dict[FxNode, Node] = {}
        self._constants = 0
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.between: list[Node] = []
        self.modules: dict[tuple[str, str], list[Node]] = {}

    def read(self, node: FxNode, by_module: bool) -> None:
        """One node."""
        if node.target in (alloc, operator.getitem):
            return
        if node.op == "call_function":
            where = self._module(node) if by_module else self.between
            inputs = list(self._inputs(node, where))
            made: Node = OperatorNode(inputs=inputs, op=_operator(node), **self._common(node))
            made.named_args = list(_argument_names(node))
            where.append(made)
            for name, value in node.kwargs.items():
                if name == "out" and isinstance(value, FxNode):
                    self._nodes[value] = made
        elif node.op in ("placeholder", "get_attr", "output"):
            made = ValueNode(dtype=str(_dtypes(node.meta.get("val")) or ""), **self._common(node))
            if node.op == "output":
                made.inputs = [self._node(n) for n in node.all_input_nodes]
            places = {"placeholder": self.inputs, "output": self.outputs}
            places.get(node.op, self.between).append(made)
        else:
            raise ExportError(
                f"node {node.name} is a {node.op}: give a graph of functions, as torch.export "
                "makes it",
                code=Code.NOT_SUPPORTED,
            )
        self._nodes[node] = made

    def _common(self, node: FxNode) -> dict[str, Any]:
        # Tools that draw such graphs fold names that differ in a number at their end.
        told = {key.value: node.meta[key] for key in self._keys if key in node.meta}
        sizes = [list(tensor.shape) for tensor in _tensors(node.meta.get("val"))]
        return {"name": f"{node.name}_", "metadata": told, "output_shapes": sizes or None}

    def _module(self, node: FxNode) -> list[Node]:
        stack = node.meta.get("source_fn_stack")
        if not stack or "nn_module_stack" not in node.meta:
            return self.between
        name, kind = stack[-1]
        return self.modules.setdefault((name, kind if isinstance(kind, str) else kind.__name__), [])

    def _inputs(self, node: FxNode, where: list[Node]) -> Iterator[Node]:
        """The nodes of the arguments, with one for each constant; lists of numbers are one."""
        for value, name in zip_longest(node.args, _argument_names(node)[: len(node.args)]):
            listed = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(one, FxNode) for one in listed):
                yield from (
                    self._node(one)
                    if isinstance(one, FxNode)
                    else self._constant("NONE", one, where)
                    for one in listed
                    if not (isinstance(one, FxNode) and one.target is alloc)
                )
            elif value is not None:
                told = value if isinstance(value, list | tuple) else str(value)
                yield self._constant(name if isinstance(name, str) else "CONST", told, where)

    def _constant(self, name: str, value: Any, where: list[Node]) -> Node:
        made = ValueNode(f"{name}_{self._constants}", val=value)
        self._constants += 1
        where.append(made)
        return made

    def _node(self, node: FxNode) -> Node:
        while node.target is operator.getitem:
            node = node.args[0]  # type: ignore[assignment]
        return self._nodes[node]


def _operator(node: FxNode) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _argument_names(node: FxNode) -> list[str]:
    schema = getattr(node.target, "_schema", None)
    return [] if schema is None else [argument.name for argument in schema.arguments]


def _tensors(value: Any) -> list[torch.Tensor]:
    """The value, or its elements, if all of it are tensors."""
    values = list(value) if isinstance(value, tuple | list) else [value]
    return values if all(isinstance(one, torch.Tensor) for one in values) else []


def _dtypes(value: Any) -> list[torch.dtype]:
    return [tensor.dtype for tensor in _tensors(value)]


def gen_graphs_from_etrecord(
    etrecord: ETRecord, enable_module_hierarchy: bool = False
) -> Mapping[str, OperatorGraph]:
    """The graphs of a record: `graph_map`'s by their names, and the Edge program's as
    `EDGE_DIALECT_GRAPH_KEY`, or "`EDGE_DIALECT_GRAPH_KEY`/METHOD" if there are several.

    Args:
        etrecord: the record.
        enable_module_hierarchy: as for `FXOperatorGraph.gen_operator_graph`.
    """
    programs = dict(etrecord.graph_map or {})
    for method, program in etrecord.edge_programs.items():
        several = len(etrecord.edge_programs) > 1
        programs[f"{EDGE_DIALECT_GRAPH_KEY}/{method}" if several else EDGE_DIALECT_GRAPH_KEY] = (
            program
        )
    return {
        name: FXOperatorGraph.gen_operator_graph(
            program.graph_module, enable_module_hierarchy=enable_module_hierarchy
        )
        for name, program in programs.items()
    }


def create_debug_handle_to_op_node_mapping(
    op_graph: OperatorGraph,
) -> dict[int, list[OperatorNode]]:
    """The calls of a graph by their debug handles.

    Args:
        op_graph: with the graphs inside it.
    """
    nodes: dict[int, list[OperatorNode]] = {}
    for node in op_graph.operators():
        handle = (node.metadata or {}).get(MetadataKey.DEBUG_HANDLE)
        if handle is not None:
            nodes.setdefault(handle, []).append(node)
    return nodes
