"""A lowered method as an `ExportedProgram` that can be read, printed and run in Python.

The graph of a `LoweredMethod` is written for the planner and the emitter: its values are the
tensors that calls write, and its views and delegates are no calls that Python could run. Here each
value is the result of its call, as in ExecuTorch's programs.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, OutputKind
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from rushlight.ir.alloc import alloc, call_delegate, et_view, view
from rushlight.ir.control import FLOW
from rushlight.lower.method import LoweredMethod, spec_of

_METHOD = "lowered_method"
_call_delegate = torch.ops.higher_order.executorch_call_delegate


def shown_program(method: LoweredMethod) -> ExportedProgram:
    """The method with its graph of out-variants; tensor nodes have their specs in `meta["spec"]`.

    It also returns the buffers that it has written in place. With jumps in it, as control flow has,
    the graph is for inspection only.
    """
    shown = copy.copy(method.program)
    writer = _Writer(method)
    shown._graph_module = GraphModule(writer.root, writer.write())
    shown._graph_module.meta.update(method.program.graph_module.meta)
    shown._graph_module.meta[_METHOD] = method
    signature = method.program.graph_signature
    shown._graph_signature = ExportGraphSignature(
        copy.deepcopy(signature.input_specs), copy.deepcopy(signature.output_specs)
    )
    returned: Any = shown.graph.output_node().args[0]
    for spec, value in zip(shown.graph_signature.output_specs, returned, strict=True):
        if isinstance(value, Node):
            spec.arg.name = value.name
    return shown


def method_of(program: ExportedProgram) -> LoweredMethod | None:
    """The method that a program shows; None if it was not made by `shown_program`."""
    method: LoweredMethod | None = program.graph_module.meta.get(_METHOD)
    return method


class _Writer:
    """One walk over the graph of a method."""

    def __init__(self, method: LoweredMethod) -> None:
        self.method = method
        self.graph = Graph()
        self.root = torch.nn.Module()
        self.values: dict[Node, Node] = {}
        self.edge = {n.name: n for n in method.program.graph.nodes if n.op == "call_function"}
        self.edge_names: set[str] = set()  # that values have
        self.modules: dict[Any, str] = {}
        self.has_jumps = any(n.target in FLOW for n in method.graph.nodes)

    def write(self) -> Graph:
        """The new graph."""
        for node in self.method.graph.nodes:
            if node.target is alloc and "base" in node.meta:
                self._view(node, node.meta["base"], list(node.meta["spec"].shape))
            elif node.target is et_view and not self.has_jumps:
                base, size, out = node.args
                assert isinstance(base, Node) and isinstance(out, Node)
                self._view(out, base, size)
            elif node.target is call_delegate:
                self._delegate(node)
            elif node.op == "output":
                self._output()
            else:
                self._copy(node)
        for node in reversed(self.graph.nodes):
            unused = node.target in (operator.getitem, alloc) and not node.users
            if unused and not self.has_jumps:
                self.graph.erase_node(node)
        return self.graph

    def _map(self, tree: Any) -> Any:
        return torch.fx.node.map_arg(tree, self.values.__getitem__)

    def _copy(self, node: Node) -> None:
        new = self.graph.node_copy(node, self.values.__getitem__)
        if node.op == "placeholder":  # constants of branches may have one target, but not one name
            new.target = new.name
        new.meta.pop("outs", None)
        self.values[node] = new
        outs = node.meta.get("outs", [])
        if not outs or self.has_jumps:
            return
        self._rename(new, node)
        new.meta["spec"] = specs = [spec_of(out) for out in outs]
        target: Any = node.target
        if len(target._schema.returns) != len(outs):
            return  # it returns nothing, or not all that it writes
        if len(outs) == 1:
            new.meta["spec"] = specs[0]
            self.values[outs[0]] = new
            return
        for i, out in enumerate(outs):
            self._is_result(out, self.graph.call_function(operator.getitem, (new, i)))

    def _output(self) -> None:
        method = self.method
        buffers = {buffer.name: node for node, buffer in method.buffers.items()}
        outputs = iter(method.outputs)
        self.graph.output(
            tuple(
                self._map(buffers[str(spec.target)])
                if spec.kind == OutputKind.BUFFER_MUTATION
                else self._map(next(outputs))
                for spec in method.program.graph_signature.output_specs
            )
        )

    def _rename(self, new: Node, node: Node) -> None:
        """Give a call the name and the example value of the Edge node that it comes from."""
        edge = self.edge.get(node.meta.get("edge_node", ""))
        if edge is not None and edge.name not in self.edge_names:
            self.edge_names.add(edge.name)
            new._rename(edge.name)
            if "val" in edge.meta:
                new.meta["val"] = edge.meta["val"]

    def _is_result(self, out: Node, new: Node) -> None:
        self.values[out] = new
        new.meta["spec"] = spec_of(out)

    def _view(self, out: Node, base: Node, size: Any) -> None:
        spec = spec_of(out)
        assert spec is not None
        base = self._map(base)
        while base.target is view:
            assert isinstance(base.args[0], Node)
            base = base.args[0]
        order = () if spec.contiguous else (list(spec.dim_order),)
        new = self.graph.call_function(view, (base, self._map(size), *order))
        new.meta.update({k: v for k, v in out.meta.items() if k != "base"})
        self._rename(new, out)
        self._is_result(out, new)

    def _delegate(self, node: Node) -> None:
        module: Any
        inputs: Any
        outs: Any
        module, inputs, outs = node.args
        name = self.modules.setdefault(module, f"lowered_module_{len(self.modules)}")
        setattr(self.root, name, module)
        args = (self.graph.get_attr(name), *self._map(inputs))
        call = self.graph.call_function(_call_delegate, args)
        call.meta.update({k: v for k, v in node.meta.items() if k != "outs"})
        self._rename(call, node)
        edge = self.edge.get(node.meta.get("edge_node", ""))
        paths = pytree.tree_flatten_with_path(edge.meta["val"])[0] if edge is not None else []
        keys: list[Any] = [path for path, _ in paths] or [
            (pytree.SequenceKey(i),) for i in range(len(outs))
        ]
        call.meta["spec"] = [spec_of(out) for out in outs]
        for out, path in zip(outs, keys, strict=True):
            result = call
            for key in path:
                at = key.idx if isinstance(key, pytree.SequenceKey) else key.key
                result = self.graph.call_function(operator.getitem, (result, at))
            self._is_result(out, result)
