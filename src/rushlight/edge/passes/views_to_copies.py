"""Views become copies: the Edge dialect is functional, and a copy that need not be made is dropped
again when memory is assigned."""

from __future__ import annotations

import torch
from torch._ops import OpOverload
from torch.fx import Graph

from rushlight.ir.dialect import VIEW_NAMES


def copy_of(target: OpOverload) -> OpOverload:
    """`aten.select_copy.int` of `aten.select.int`."""
    packet = getattr(torch.ops.aten, f"{target._schema.name.split('::')[1]}_copy")
    copy: OpOverload = getattr(packet, target._overloadname)
    return copy


def views_to_copies(graph: Graph) -> None:
    """Give every view operator's node the copying operator of the same arguments."""
    for node in graph.nodes:
        target = node.target
        if isinstance(target, OpOverload) and target._schema.name in VIEW_NAMES:
            node.target = copy_of(target)
        elif target is torch.ops.aten._unsafe_view.default:
            node.target = torch.ops.aten.view_copy.default
