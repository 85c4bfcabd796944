"""Leave out the zero points of weights in groups where all are zero.

There is one for each group, in int64: as many bytes as half of a group of 32 weights of 4 bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.quantized_values import name_of

aten = torch.ops.aten
_KEEPS_ZEROS = {aten._to_copy.default, aten.view.default, aten.clone.default}
"""Calls that make zeros of zeros."""


def drop_zero_points(constants: Constants) -> int:
    """Pass none where all are zero; returns how many calls are changed."""
    known = constants.nodes()
    changed = 0
    for node in constants.graph.nodes:
        if name_of(node) != "dequantize_per_channel_group":
            continue
        argument: Any = node.args[2]
        source = argument
        while isinstance(source, Node) and source.target in _KEEPS_ZEROS:
            source = source.args[0]
        if source in known and not bool(constants.value(source).any()):
            node.update_arg(2, None)
            changed += 1
    return changed
