"""The tensors of a graph, and how long they live."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, InputKind
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from rushlight.errors import Code, ExportError
from rushlight.exir.operators import is_inplace_variant, out_names, unwrap_op_overload
from rushlight.exir.specs import TensorSpec
from rushlight.ir.alloc import alloc, free, view
from rushlight.partition import executorch_call_delegate

_while_loop = torch.ops.higher_order.while_loop
# What a graph may have beside out-variants when it is planned.
_PLANNED = (
    *(alloc, view, operator.getitem, torch.ops.higher_order.cond, _while_loop),
    *(torch.ops.higher_order.map_impl, torch.ops.higher_order.scan, executorch_call_delegate),
)


def filter_nodes(inputs: Iterable[Any]) -> list[Node]:
    """The nodes in arguments, also those inside lists, tuples and dicts."""
    return [leaf for leaf in pytree.tree_leaves(list(inputs)) if isinstance(leaf, Node)]


def get_node_tensor_specs(node: Node) -> list[TensorSpec]:
    """The specs of a node's tensors; those of a view are its base's."""
    source = node
    if node.target is view:
        assert isinstance(node.args[0], Node)
        source = node.args[0]
    specs = source.meta.get("spec")
    many = specs if isinstance(specs, list | tuple) else [specs]
    return [spec for spec in many if isinstance(spec, TensorSpec)]


def is_out_var_node(node: Node) -> bool:
    """Whether a node calls an out-variant."""
    is_operator = node.op == "call_function" and isinstance(node.target, OpOverload)
    return is_operator and bool(out_names(node.target))  # type: ignore[arg-type]


def is_inplace_node(node: Node) -> bool:
    """Whether a node calls an operator that changes its first argument."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return False
    schema = unwrap_op_overload(node.target)._schema
    return is_inplace_variant(schema.name, schema.overload_name)


def share_inplace_specs(node: Node) -> None:
    """Make the results of an operator that changes arguments have these arguments' specs."""
    schema = unwrap_op_overload(node.target)._schema
    written = [
        (position, one.name, one.alias_info.before_set)
        for position, one in enumerate(schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    ]
    specs = node.meta.get("spec")
    is_one = isinstance(specs, TensorSpec)
    results: list[Any] = [specs] if is_one else list(specs or ())
    for i, returned in enumerate(schema.returns[: len(results)]):
        names = returned.alias_info.before_set if returned.alias_info is not None else set()
        matched = [(at, name) for at, name, own in written if own & names]
        if len(matched) != 1:
            continue
        at, name = matched[0]
        source = node.args[at] if at < len(node.args) else node.kwargs.get(name)
        spec = source.meta.get("spec") if isinstance(source, Node) else None
        if isinstance(spec, TensorSpec):
            results[i] = spec
    if results:
        node.meta["spec"] = results[0] if is_one else type(specs)(results)  # type: ignore[misc]


def buffer_of(node: Node, signature: ExportGraphSignature | None) -> str | None:
    """The name of the buffer that an input is; None if it is none, or nothing is known."""
    if signature is None or node.op != "placeholder":
        return None
    return signature.inputs_to_buffers.get(str(node.target))


def is_mutable_buffer(node: Node, signature: ExportGraphSignature | None = None) -> bool:
    """Whether an input is a buffer that the program writes."""
    if signature is None:
        return False
    return buffer_of(node, signature) in signature.buffers_to_mutate.values()


def mutable_buffer_specs(
    nodes: Iterable[Node], signature: ExportGraphSignature | None
) -> set[TensorSpec]:
    """The specs of the buffers that a program writes."""
    return {s for n in nodes if is_mutable_buffer(n, signature) for s in get_node_tensor_specs(n)}


def do_user_inputs_exist(graph_signature: ExportGraphSignature | None) -> bool:
    """Whether the user gives anything but numbers and strings."""
    if graph_signature is None:
        return False
    given = [s.arg for s in graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    return any(
        not (isinstance(arg, ConstantArgument) and isinstance(arg.value, int | float | bool | str))
        for arg in given
    )


def get_graph_input_tensors(
    nodes: Iterable[Node], graph_signature: ExportGraphSignature | None = None
) -> set[TensorSpec]:
    """The specs of a graph's inputs, without the buffers that it writes."""
    return {
        spec
        for node in nodes
        if node.op == "placeholder" and not is_mutable_buffer(node, graph_signature)
        for spec in get_node_tensor_specs(node)
    }


def get_graph_output_tensors(nodes: Iterable[Node]) -> set[TensorSpec]:
    """The specs of what a graph returns."""
    return {s for node in nodes if node.op == "output" for s in get_node_tensor_specs(node)}


def collect_specs_from_nodes(
    nodes: Iterable[Node],
    graph_signature: ExportGraphSignature | None = None,
    ignore_graph_input: bool = False,
    ignore_graph_output: bool = False,
    ignore_mutable_buffers: bool = False,
    ignore_const: bool = True,
    ignore_out_var_node: bool = True,
    dedup: bool = True,
    do_assertion: bool = True,
    ignore_dynamic_unbound_tensor: bool = True,
) -> Iterator[TensorSpec]:
    """The specs of nodes, in order.

    Args:
        nodes: of one graph.
        graph_signature: tells which inputs are buffers that are written.
        ignore_graph_input, ignore_graph_output, ignore_mutable_buffers, ignore_const: leave out
            the specs of these.
        ignore_out_var_node: leave out calls of out-variants, which have other nodes' tensors.
        dedup: give each spec once.
        do_assertion: refuse nodes that cannot be planned.
        ignore_dynamic_unbound_tensor: leave out tensors without a bound.

    Raises:
        ExportError: `do_assertion`, and a node is no allocation, view, input, output, control flow
            or call of a delegate.
    """
    nodes = list(nodes)
    ignored: set[TensorSpec] = set()
    if ignore_graph_input:
        ignored |= get_graph_input_tensors(nodes, graph_signature)
    buffers = mutable_buffer_specs(nodes, graph_signature)
    if ignore_graph_output:
        ignored |= get_graph_output_tensors(nodes) - buffers
    if ignore_mutable_buffers:
        ignored |= buffers
    for node in nodes:
        if node.op == "get_attr" or (ignore_out_var_node and is_out_var_node(node)):
            continue
        specs = get_node_tensor_specs(node)
        if specs and is_inplace_node(node):
            share_inplace_specs(node)
            continue  # the argument's own node gives the spec
        if specs and do_assertion:
            _check_planned(node)
        for spec in specs:
            is_const = spec.const and not node.meta.get("weight_has_gradient", False)
            if spec in ignored or (ignore_const and is_const):
                continue
            if ignore_dynamic_unbound_tensor and spec.is_dynamic_unbound_tensor:
                continue
            if dedup:
                ignored.add(spec)
            yield spec


def _check_planned(node: Node) -> None:
    if node.op not in ("placeholder", "output") and node.target not in _PLANNED:
        raise ExportError(
            f"{node.name} ({node.op} of {node.target}) cannot be planned: run ToOutVarPass first",
            code=Code.INVALID_STATE,
        )


def update_tensor_lifetime(
    node: Node,
    spec: TensorSpec,
    node_idx: int,
    max_node_idx: int,
    gs: ExportGraphSignature | None = None,
) -> None:
    """Make a tensor live at a node.

    Args:
        node: has the tensor: an input lives from the start, a buffer that is written for ever.
        spec: the tensor's.
        node_idx: the index of the node where the tensor is used.
        max_node_idx: the last index.
        gs: tells which inputs are buffers that are written.
    """
    first, last = spec.lifetime
    start = 0 if node.op == "placeholder" else node_idx
    end = max_node_idx if is_mutable_buffer(node, gs) else node_idx
    spec.lifetime = [
        start if first is None else min(first, start),
        end if last is None else max(last, end),
    ]


def update_all_tensors_lifetime(
    graph_module: GraphModule, graph_signature: ExportGraphSignature | None = None
) -> set[TensorSpec]:
    """Write the lifetimes of all tensors into their specs, which are returned."""
    specs: set[TensorSpec] = set()
    last = len(graph_module.graph.nodes) - 1
    for at, node in enumerate(graph_module.graph.nodes):
        if is_inplace_node(node) and get_node_tensor_specs(node):
            share_inplace_specs(node)
        for used in filter_nodes([node, node.args, dict(node.kwargs)]):
            if used.op == "get_attr":
                continue
            for spec in get_node_tensor_specs(used):
                update_tensor_lifetime(used, spec, at, last, graph_signature)
                specs.add(spec)
    return specs


def _calls(graph_module: GraphModule, target: Any) -> Iterator[Node]:
    return (node for node in graph_module.graph.nodes if node.target is target)


def get_cond_nodes(graph_module: GraphModule) -> Iterator[Node]:
    """The calls of `torch.cond`."""
    return _calls(graph_module, torch.ops.higher_order.cond)


def get_while_nodes(graph_module: GraphModule) -> Iterator[Node]:
    """The calls of `while_loop`."""
    return _calls(graph_module, _while_loop)


def get_map_nodes(graph_module: GraphModule) -> Iterator[Node]:
    """The calls of `map`."""
    return _calls(graph_module, torch.ops.higher_order.map_impl)


def get_scan_nodes(graph_module: GraphModule) -> Iterator[Node]:
    """The calls of `scan`."""
    return _calls(graph_module, torch.ops.higher_order.scan)


def get_return_specs(graph_module: GraphModule) -> set[TensorSpec]:
    """The specs of what a graph returns."""
    return get_graph_output_tensors(graph_module.graph.nodes)


def get_input_specs(graph_module: GraphModule) -> set[TensorSpec]:
    """The specs of a graph's inputs."""
    return get_graph_input_tensors(graph_module.graph.nodes)


def insert_calls_to_free(graph_module: GraphModule, allspecs: Iterable[TensorSpec]) -> None:
    """Write the end of the lives of tensors without a bound, which are allocated as a program runs.

    Inputs and outputs are not freed. The lifetimes in specs do not count the new nodes.
    """
    kept = get_return_specs(graph_module) | get_input_specs(graph_module)
    ending: dict[int, list[TensorSpec]] = defaultdict(list)
    for spec in allspecs:
        if spec.is_dynamic_unbound_tensor and spec not in kept:
            ending[spec.lifetime[1]].append(spec)
    for at, node in enumerate(list(graph_module.graph.nodes)):
        for spec in ending.get(at, ()):
            with graph_module.graph.inserting_after(node):
                graph_module.graph.call_function(free, (spec,))  # type: ignore[arg-type]
    graph_module.recompile()
