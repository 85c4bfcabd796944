"""Adds constants and mutable buffers to programs, and removes them."""

from __future__ import annotations

import torch
from torch._guards import detect_fake_mode
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, Node

from rushlight.errors import Code, ExportError

_OWNED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def create_constant_placeholder(
    exp_program: ExportedProgram,
    graph: Graph,
    name: str,
    kind: InputKind,
    data: torch.Tensor,
    persistent_buffer: bool | None = None,
) -> Node:
    """Add a parameter, buffer or constant to a program, at the graph's point of insertion.

    Args:
        exp_program: the program, which is changed.
        graph: its graph, which inserts before the first input of the user.
        name: of the node and of the tensor.
        kind: PARAMETER, BUFFER or CONSTANT_TENSOR.
        data: the tensor.
        persistent_buffer: for a buffer, whether it belongs to the state dict.
    """
    if kind not in _OWNED:
        raise ExportError(
            f"{kind} is not a kind of constants: give one of {', '.join(map(str, _OWNED))}",
            code=Code.INVALID_ARGUMENT,
        )
    is_state = kind == InputKind.PARAMETER or (kind == InputKind.BUFFER and persistent_buffer)
    held = exp_program.state_dict if is_state else exp_program.constants
    if kind == InputKind.PARAMETER and not isinstance(data, torch.nn.Parameter):
        data = torch.nn.Parameter(data, requires_grad=False)
    held[name] = data
    node = graph.create_node("placeholder", name)
    values = [n.meta["val"] for n in graph.nodes if n.op == "placeholder" and "val" in n.meta]
    mode = detect_fake_mode(values) or FakeTensorMode()
    node.meta["val"] = mode.from_tensor(data, static_shapes=True)
    place = [n for n in graph.nodes if n.op == "placeholder"].index(node)
    persistent = bool(persistent_buffer) if kind == InputKind.BUFFER else None
    spec = InputSpec(kind, TensorArgument(node.name), name, persistent)
    exp_program.graph_signature.input_specs.insert(place, spec)
    return node


def delete_constant_placeholder(exp_program: ExportedProgram, node: Node) -> None:
    """Remove a parameter, buffer or constant that nothing uses from a program.

    Raises:
        ExportError: the node is used, or is none of these.
    """
    specs = exp_program.graph_signature.input_specs
    spec = next((s for s in specs if getattr(s.arg, "name", "") == node.name), None)
    if spec is None or spec.kind not in _OWNED or node.users:
        told = f"{len(node.users)} nodes use it" if node.users else "it is no constant"
        raise ExportError(f"{node.name} cannot be deleted: {told}", code=Code.INVALID_ARGUMENT)
    specs.remove(spec)
    exp_program._state_dict.pop(str(spec.target), None)
    exp_program._constants.pop(str(spec.target), None)
    node.graph.erase_node(node)


def create_mutable_buffer(exp_program: ExportedProgram, name: str, data: torch.Tensor) -> Node:
    """Add a buffer that a program may write, before its other inputs.

    Args:
        exp_program: the program, which is changed.
        name: of the node, "b_counter"; the buffer's own name is without "b_".
        data: its first content.
    """
    graph = exp_program.graph
    first = next(iter(graph.nodes))
    target = name.removeprefix("b_")
    with graph.inserting_before(first):
        node = create_constant_placeholder(
            exp_program, graph, name, InputKind.BUFFER, data, persistent_buffer=True
        )
    exp_program.state_dict[target] = exp_program.state_dict.pop(name)
    specs = exp_program.graph_signature.input_specs
    specs[0] = InputSpec(InputKind.BUFFER, TensorArgument(node.name), target, True)
    written = OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), target)
    exp_program.graph_signature.output_specs.insert(0, written)
    output = graph.output_node()
    returned = output.args[0]
    many = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    output.args = ((node, *many),)
    return node
