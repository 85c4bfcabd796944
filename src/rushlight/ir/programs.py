"""Makes exported programs from graphs: copies, and parts of other programs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind
from torch.fx import Graph, GraphModule, Node

from rushlight.ir.branches import attribute


def copy_program(program: ExportedProgram) -> ExportedProgram:
    """A copy of the program and of all its graphs, control flow included; tensors are shared."""
    new = copy.copy(program)
    new._graph_module = copy_graph_module(program.graph_module)
    new._graph_signature = copy.deepcopy(program.graph_signature)
    new._state_dict = dict(program.state_dict)
    new._constants = dict(program.constants)
    return new


def inputs_not_written(program: ExportedProgram) -> set[Node]:
    """The inputs, constants among them, that the program does not write."""
    signature = program.graph_signature
    written = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
    inputs = program.graph.find_nodes(op="placeholder")
    return {
        node
        for spec, node in zip(signature.input_specs, inputs, strict=True)
        if (node.name if spec.kind is InputKind.USER_INPUT else spec.target) not in written
    }


def copy_node(graph: Graph, node: Node, env: Mapping[Node, Node] = MappingProxyType({})) -> Node:
    """A copy of `node` at the end of `graph`, under the same name if that is free.

    torch.export gives inputs the names of builtins (`input`), which FX by itself avoids; a
    signature refers to nodes by name, so the names must stay.

    Args:
        graph: the graph that gets the copy.
        node: the node to copy.
        env: the copies of its arguments, by the original nodes.
    """
    used = graph._graph_namespace._used_names
    is_free = node.name not in used
    new = graph.node_copy(node, lambda n: env[n])
    if is_free and new.name != node.name:
        used.discard(new.name)
        used.add(node.name)
        new.name = node.name
    return new


def copy_graph_module(module: GraphModule) -> GraphModule:
    """A copy of the module and its graph; metadata are copied one level deep."""
    graph = Graph()
    env: dict[Node, Node] = {}
    held: dict[str, Any] = {}
    for node in module.graph.nodes:
        env[node] = copy_node(graph, node, env)
        if node.op == "get_attr":
            value = attribute(node)
            if isinstance(value, GraphModule):
                value = copy_graph_module(value)
            held[str(node.target)] = value
    return make_module(held, graph, module)


def make_module(held: dict[str, Any], graph: Graph, like: GraphModule) -> GraphModule:
    """A module with a graph and the objects that the graph's `get_attr` nodes name."""
    new = GraphModule(held, graph)
    new.meta.update(like.meta)
    return new


def make_program(
    parent: ExportedProgram,
    module: GraphModule,
    signature: ExportGraphSignature,
    tensors: dict[str, torch.Tensor],
) -> ExportedProgram:
    """A program that takes its user inputs by position and returns a tuple.

    Args:
        parent: the program that the graph was taken from; the ranges of its symbols are kept.
        module, signature: the graph and its signature.
        tensors: its parameters, buffers and constants, by name.
    """
    kinds = {spec.target: spec.kind for spec in signature.input_specs if spec.target is not None}
    is_constant = {n for n, kind in kinds.items() if kind == InputKind.CONSTANT_TENSOR}
    new = copy.copy(parent)
    new._graph_module = module
    new._graph_signature = signature
    new._state_dict = {n: t for n, t in tensors.items() if n not in is_constant}
    new._constants = {n: t for n, t in tensors.items() if n in is_constant}
    for spec in signature.input_specs:  # a buffer that is not saved counts as a constant
        if spec.kind == InputKind.BUFFER and not spec.persistent:
            name = str(spec.target)
            new._constants[name] = new._state_dict.pop(name)
    inputs = tuple(0 for s in signature.input_specs if s.kind == InputKind.USER_INPUT)
    outputs = tuple(0 for _ in signature.user_outputs)
    new._module_call_graph = [
        ModuleCallEntry(
            "",
            ModuleCallSignature(
                inputs=[],
                outputs=[],
                in_spec=pytree.tree_flatten((inputs, {}))[1],
                out_spec=pytree.tree_flatten(outputs)[1],
            ),
        )
    ]
    new._example_inputs = None
    new._guards_code = []
    return new
