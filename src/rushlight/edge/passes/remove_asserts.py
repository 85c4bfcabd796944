"""Remove what only asserts, and copies of values that nothing can write.

The contract and the runtime check inputs before a run, so assertions in the graph say nothing more.
"""

from __future__ import annotations

import torch
from torch.fx import Graph

from rushlight.ir.rewrite import replace

aten = torch.ops.aten
_ASSERTS = {
    aten._assert_tensor_metadata.default,
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
}
_IDENTITIES = {
    aten.lift_fresh_copy.default,
    aten.alias.default,
    aten.alias_copy.default,
    aten.detach.default,
    aten.detach_copy.default,
}


def remove_asserts(graph: Graph) -> None:
    """Erase assertions; let users of an identity use its input."""
    for node in list(graph.nodes):
        if node.target in _ASSERTS:
            graph.erase_node(node)
        elif node.target in _IDENTITIES:
            replace(node, node.args[0])
