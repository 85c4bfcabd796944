"""Dequantise grouped weights that no backend took, with the operator for channels.

ExecuTorch has no kernel for groups. The integers are reshaped so that each group is a row of its
own, the rows are dequantised as channels, and a view restores the weight's shape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.edge.to_edge import finish
from rushlight.ir.programs import copy_program
from rushlight.ir.quantized_values import affine_of, dequantizes
from rushlight.ir.rewrite import insert, replace

_VIEW = torch.ops.aten.view_copy.default


def groups_to_channels(program: ExportedProgram) -> ExportedProgram:
    """The Edge program without grouped constants; `program` itself if it has none.

    Args:
        program: not changed; the result shares its tensors.
    """
    if not any(_is_in_groups(node) for node in program.graph.nodes):
        return program
    new = copy_program(program)
    constants = Constants(new)
    reshaped: dict[Node, Node] = {}  # each constant is reshaped once, also with several users
    for node in list(new.graph.nodes):
        if _is_in_groups(node) and constants.nodes().issuperset(node.all_input_nodes):
            _rewrite(constants, node, reshaped)
    constants.drop_unused()
    finish(new)
    return new


def _is_in_groups(node: Node) -> bool:
    affine = affine_of(node) if dequantizes(node) else None
    return affine is not None and affine.per == "channel_group"


def _rewrite(constants: Constants, node: Node, reshaped: dict[Node, Node]) -> None:
    affine = affine_of(node)
    assert affine is not None
    shape = list(node.meta["val"].shape)

    def channels(constant: Any, *sizes: int) -> Any:
        if not isinstance(constant, Node):
            return constant
        if constant not in reshaped:
            value = constants.value(constant).reshape(-1, *sizes)
            reshaped[constant] = constants.add(value, like=constant)
        return reshaped[constant]

    parameters = channels(affine.scale), channels(affine.zero_point)
    how = 0, affine.low, affine.high, affine.dtype
    # Looked up here: the library is loaded only if some graph has groups.
    per_channel = torch.ops.quantized_decomposed.dequantize_per_channel.default
    kwargs = {} if affine.real == torch.float32 else {"out_dtype": affine.real}
    integers = channels(affine.source, affine.group)
    rows = insert(node.graph, per_channel, (integers, *parameters, *how), kwargs, like=node)
    replace(node, insert(node.graph, _VIEW, (rows, shape), like=node))
