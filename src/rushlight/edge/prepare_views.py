"""Makes views independent of how the operators before them lay out their results.

Attention as captured has the layout of torch's fused kernel, in which heads may be merged without a
copy, so that capture drops a `contiguous()` between. Its decomposition has another layout, and a
`view` of it would fail; `reshape` copies where it must.
"""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from rushlight.ir.branches import branches
from rushlight.ir.programs import copy_program

aten = torch.ops.aten


def prepare_views(program: ExportedProgram) -> ExportedProgram:
    """`program` if it has no attention, else a copy with `reshape` for `view`; tensors are shared.

    Args:
        program: of the ATen dialect.
    """
    if not any(_attends(module) for module in _modules(program)):
        return program
    own = copy_program(program)
    for module in _modules(own):
        if _attends(module):
            for node in module.graph.find_nodes(op="call_function", target=aten.view.default):
                node.target = aten.reshape.default
            module.recompile()
    return own


def _modules(program: ExportedProgram) -> list[GraphModule]:
    return [program.graph_module, *branches(program.graph_module)]


def _attends(module: GraphModule) -> bool:
    target = aten.scaled_dot_product_attention.default
    return bool(module.graph.find_nodes(op="call_function", target=target, sort=False))
