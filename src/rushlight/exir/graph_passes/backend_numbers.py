"""`EdgeToBackendOpsPass`: arithmetic on sizes becomes operators of the runtime."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.library import Library

from rushlight.edge.operators import BackendOpOverload, backend_operator
from rushlight.exir.graph_passes.base import graphs_in
from rushlight.exir.operators import bind_pattern_to_op
from rushlight.ir.operators import PRIMS

_BOOLEAN = ("eq", "gt", "lt", "ge", "le", "sym_not")
_UNARY = ("neg", "sym_not", "sym_float", "sym_int", "ceil", "trunc", "round")


_SIZES = (
    torch.ops.aten.sym_stride.int,
    torch.ops.aten.sym_size.int,
    torch.ops.aten.sym_numel.default,
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
    torch.ops.aten.sym_constrain_range.default,
)
executorch_prims_lib = Library("executorch_prim", "FRAGMENT")


def is_sym_op(target: Any) -> bool:
    """Whether a target of a graph computes with sizes and numbers, not with tensors."""
    return target in PRIMS or target in _SIZES or target in _numbers().values()


@cache
def _numbers() -> dict[Any, BackendOpOverload]:
    """The operator for each function on numbers; torch knows them once this was called."""
    library = executorch_prims_lib
    found: dict[Any, BackendOpOverload] = {}
    for function, kernel in PRIMS.items():
        name = kernel.partition("::")[2]
        own = name.partition(".")[0]
        arguments = "Scalar b, Scalar t, Scalar f" if own == "sym_ite" else "Scalar a, Scalar b"
        arguments = "Scalar a" if own in _UNARY else arguments
        result = "bool" if own in _BOOLEAN else "Scalar"
        bind_pattern_to_op(library, f"{name}({arguments}) -> {result}")(function)
        packet = getattr(torch.ops.executorch_prim, own)
        found[function] = backend_operator(packet.Scalar)
    return found


class EdgeToBackendOpsPass(PassBase):
    """Makes functions on symbolic numbers operators of `ops.backend.executorch_prim`.

    `to_executorch` does this itself, and takes graphs with the functions.
    """

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the calls."""
        changed = False
        for module in graphs_in(graph_module):
            for node in module.graph.nodes:
                if node.op == "call_function" and node.target in PRIMS:
                    node.target, changed = _numbers()[node.target], True
            module.recompile()
        return PassResult(graph_module, changed)
