"""The tensors that nodes of a program stand for, where these depend on constants alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from rushlight.edge.constants import Constants
from rushlight.exir.passes import default_skip_targets
from rushlight.ir.rewrite import fake_mode_of, is_pure

_PLAIN = (
    *(float, int, bool, str, type(None)),
    *(torch.Tensor, torch.device, torch.dtype, torch.layout, torch.memory_format),
)


def is_constant_buffer(program: ExportedProgram, node: Node) -> bool:
    """Whether a node stands for a buffer that the program does not write."""
    target = program.graph_signature.inputs_to_buffers.get(node.name)
    return target is not None and target not in program.graph_signature.buffers_to_mutate.values()


def get_constant_placeholder_dict(
    exported_program: ExportedProgram,
) -> OrderedDict[Node, torch.Tensor]:
    """The tensors of parameters, of constants, and of buffers that the program does not write."""
    constants = Constants(exported_program)
    known = constants.nodes()
    inputs = exported_program.graph.find_nodes(op="placeholder")
    return OrderedDict((node, constants.value(node)) for node in inputs if node in known)


def is_const(
    arg: Any, exported_program: ExportedProgram, const_node_to_tensor: Mapping[Node, Any]
) -> bool:
    """Whether an argument, with all that it has, is a constant."""
    leaves = pytree.tree_leaves(arg)
    return all(
        one in const_node_to_tensor if isinstance(one, Node) else isinstance(one, _PLAIN)
        for one in leaves
    )


def get_data(
    arg: Any, exported_program: ExportedProgram, const_node_to_tensor: Mapping[Node, Any]
) -> Any:
    """An argument with tensors in place of nodes; None in place of a node that is no constant."""
    return pytree.tree_map(
        lambda one: const_node_to_tensor.get(one) if isinstance(one, Node) else one, arg
    )


def get_propagated_const_tensor_dict(
    exported_program: ExportedProgram, custom_skip_targets: Collection[Any] | None
) -> OrderedDict[Node, Any]:
    """The values of all nodes that depend on constants alone.

    Args:
        exported_program: not changed.
        custom_skip_targets: operators whose calls are no constants; None: those of
            `constant_prop_pass`.
    """
    known: OrderedDict[Node, Any] = OrderedDict(get_constant_placeholder_dict(exported_program))
    skipped = default_skip_targets() if custom_skip_targets is None else custom_skip_targets
    for node in exported_program.graph.nodes:
        if node.op != "call_function" or node.target in skipped or not is_pure(node):
            continue
        given = (node.args, node.kwargs)
        if not is_const(given, exported_program, known):
            continue
        args, kwargs = get_data(given, exported_program, known)
        with torch.no_grad():
            value = node.target(*args, **kwargs)
        if isinstance(value, torch.Tensor) and 0 in value.stride():
            value = value.contiguous()
        known[node] = value
    return known


def get_first_user_input(exported_program: ExportedProgram) -> Node | None:
    """The first input that is no parameter, buffer or constant."""
    names = set(exported_program.graph_signature.user_inputs)
    inputs = exported_program.graph.find_nodes(op="placeholder")
    return next((node for node in inputs if node.name in names), None)


def get_fake_mode(exported_program: ExportedProgram) -> FakeTensorMode:
    """The mode of the example values of a program."""
    return fake_mode_of(exported_program.graph)
