"""Replace views by copies, because the Edge dialect is functional.

Copies that are not needed are removed again when memory is planned.
"""

from __future__ import annotations

import torch
from torch._ops import OpOverload
from torch.fx import Graph

from rushlight.ir.dialect import VIEW_NAMES


def copy_of(target: OpOverload) -> OpOverload:
    """The copying variant of a view operator: `aten.select_copy.int` for `aten.select.int`."""
    packet = getattr(torch.ops.aten, f"{target._schema.name.split('::')[1]}_copy")
    copy: OpOverload = getattr(packet, target._overloadname)
    return copy


def views_to_copies(graph: Graph) -> None:
    """Replace every view operator by its copying variant, with the same arguments."""
    for node in graph.nodes:
        target = node.target
        if isinstance(target, OpOverload) and target._schema.name in VIEW_NAMES:
            node.target = copy_of(target)
        elif target is torch.ops.aten._unsafe_view.default:
            node.target = torch.ops.aten.view_copy.default
