"""Adds constants and mutable buffers to programs, and removes them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

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

    Returns:
        The new node; the one that is there, if the program has a tensor of this name already.

    Raises:
        ExportError: the kind is no constant's, or the graph inserts after an input of the user.
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
    if name in exp_program.state_dict or name in exp_program.constants:
        known: list[Node] = graph.find_nodes(op="placeholder")
        for one in known:
            if one.target == name:
                return one
    held[name] = data
    node = graph.create_node("placeholder", name)
    values = [n.meta["val"] for n in graph.nodes if n.op == "placeholder" and "val" in n.meta]
    mode = detect_fake_mode(values) or FakeTensorMode()
    node.meta["val"] = mode.from_tensor(data, static_shapes=True)
    place = [n for n in graph.nodes if n.op == "placeholder"].index(node)
    if any(s.kind == InputKind.USER_INPUT for s in exp_program.graph_signature.input_specs[:place]):
        raise ExportError(
            f"{name} comes after an input of the user: insert it before the first one",
            code=Code.INVALID_ARGUMENT,
        )
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
    spec = next((s for s in specs if _is_of(s, node)), None)
    if spec is None or spec.kind not in _OWNED or node.users:
        told = f"{len(node.users)} nodes use it" if node.users else "it is no constant"
        raise ExportError(f"{node.name} cannot be deleted: {told}", code=Code.INVALID_ARGUMENT)
    specs.remove(spec)
    exp_program._state_dict.pop(str(spec.target), None)
    exp_program._constants.pop(str(spec.target), None)
    node.graph.erase_node(node)


def create_mutable_buffer(exp_program: ExportedProgram, name: str, data: torch.Tensor) -> Node:
    """Add a buffer that a program may write, after its other buffers.

    The program returns it as written, after the other buffers that it writes: a call that writes
    it in place, or one whose result replaces it in the graph's outputs, changes it.

    Args:
        exp_program: the program, which is changed.
        name: of the node, "b_counter"; the buffer's own name is without "b_".
        data: its first content.

    Raises:
        ExportError: the name is empty, or a tensor of the program has it.
    """
    graph, signature = exp_program.graph, exp_program.graph_signature
    target = name.removeprefix("b_")
    if not target.strip() or target in exp_program.state_dict:
        told = "is there already" if target.strip() else "is empty"
        raise ExportError(f"the buffer's name {target!r} {told}", code=Code.INVALID_ARGUMENT)
    specs = signature.input_specs
    place = _first(specs, (InputKind.CONSTANT_TENSOR, InputKind.USER_INPUT))
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    rest = [*inputs[place:], *(n for n in graph.nodes if n.op != "placeholder")]
    with graph.inserting_before(rest[0]):
        node = create_constant_placeholder(
            exp_program, graph, name, InputKind.BUFFER, data, persistent_buffer=True
        )
    exp_program.state_dict[target] = exp_program.state_dict.pop(name)
    specs[place] = InputSpec(InputKind.BUFFER, TensorArgument(node.name), target, True)
    place = _first(signature.output_specs, (OutputKind.USER_OUTPUT,))
    written = OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(node.name), target)
    signature.output_specs.insert(place, written)
    output = graph.output_node()
    returned = output.args[0]
    many = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    output.args = ((*many[:place], node, *many[place:]),)
    return node


def _first(specs: Sequence[InputSpec | OutputSpec], kinds: tuple[Any, ...]) -> int:
    """The index of the first spec of one of these kinds; their number if there is none."""
    return next((i for i, spec in enumerate(specs) if spec.kind in kinds), len(specs))


def is_get_attr_node(node: Any) -> bool:
    """Whether a node is an attribute of its module."""
    return isinstance(node, Node) and node.op == "get_attr"


def is_param_node(exp_prog: ExportedProgram, node: Node) -> bool:
    """Whether a node is a parameter, buffer or constant of a program, or an attribute."""
    return is_get_attr_node(node) or any(
        _is_of(spec, node) and spec.kind in _OWNED for spec in exp_prog.graph_signature.input_specs
    )


def get_param_tensor(exp_prog: ExportedProgram, node: Node | None) -> torch.Tensor | None:
    """The tensor of a parameter, buffer or constant of a program, or of an attribute.

    Args:
        exp_prog: the program.
        node: its node; None gives None.

    Raises:
        ExportError: the node is none of these.
    """
    if node is None:
        return None
    if is_get_attr_node(node):
        owner = node.graph.owning_module
        module = exp_prog.graph_module if owner is None else owner
        tensor: torch.Tensor = operator.attrgetter(str(node.target))(module)
        return tensor
    for spec in exp_prog.graph_signature.input_specs:
        if _is_of(spec, node) and spec.kind in _OWNED:
            target = str(spec.target)
            held = exp_prog.state_dict if target in exp_prog.state_dict else exp_prog.constants
            found: torch.Tensor = held[target]
            return found
    raise ExportError(
        f"{node.name} is no parameter, buffer or constant: is_param_node tells which nodes are",
        code=Code.INVALID_ARGUMENT,
    )


def get_tensor_name(exp_prog: ExportedProgram, node: Node | None) -> str:
    """The name of a parameter, buffer or constant in its program, "blocks.0.weight".

    Args:
        exp_prog: the program.
        node: its node; the target of any other node of a name, and "" for None.

    Raises:
        ExportError: the node is a call.
    """
    if node is None:
        return ""
    for spec in exp_prog.graph_signature.input_specs:
        if _is_of(spec, node) and spec.kind in _OWNED:
            return str(spec.target)
    if not isinstance(node.target, str):
        raise ExportError(
            f"{node.name} is a call of {node.target}, which has no name in a program: give a "
            f"parameter, buffer or constant",
            code=Code.INVALID_ARGUMENT,
        )
    return node.target


def _is_of(spec: InputSpec, node: Node) -> bool:
    return getattr(spec.arg, "name", "") == node.name
