"""`ToOutVarPass`: functional operators become out-variants that write allocated tensors."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from rushlight.errors import Code, ExportError
from rushlight.exir.operators import to_out_variant, unwrap_op_overload
from rushlight.exir.symbols import eval_shape_upper_bound
from rushlight.ir.alloc import alloc, free, view
from rushlight.ir.branches import branch
from rushlight.ir.operators import PRIMS, SCALAR_RESULTS
from rushlight.partition import executorch_call_delegate

# What stays as it is: it has no tensor of its own, or is no call of a kernel.
to_out_var_skiplist: set[Any] = {
    *(alloc, view, free, operator.getitem, executorch_call_delegate),
    *SCALAR_RESULTS,
    *PRIMS,
    torch.ops.aten.sym_stride.int,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
}


class ToOutVarPass(PassBase):
    """Makes operators out-variants, with an `alloc` node for each result.

    Args:
        ignore_to_out_var_failure: leave an operator without an out-variant as it is.
    """

    def __init__(self, ignore_to_out_var_failure: bool = False) -> None:
        self.ignore_to_out_var_failure = ignore_to_out_var_failure

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph, and its branches and bodies.

        Raises:
            ExportError: operators have no out-variant; names them.
        """
        missing: dict[str, None] = {}
        for node in list(graph_module.graph.nodes):
            inner = branch(node) if node.op == "get_attr" else None
            if inner is not None:
                self.call(inner)
            if node.op == "call_function" and _is_functional(node):
                try:
                    _write_allocated(graph_module, node)
                except ExportError:
                    missing[unwrap_op_overload(node.target).name()] = None
        graph_module.recompile()
        if missing and not self.ignore_to_out_var_failure:
            raise ExportError(
                f"these operators have no out variant: {', '.join(missing)}; load the libraries "
                f"that define them",
                code=Code.OPERATOR_MISSING,
            )
        return PassResult(graph_module, True)


def _is_functional(node: Node) -> bool:
    target: Any = node.target
    if not isinstance(target, OpOverload) or target in to_out_var_skiplist:
        return False
    namespace = target._schema.name.partition("::")[0]
    return namespace != "executorch_prim" and not target._schema.is_mutable


def _write_allocated(graph_module: GraphModule, node: Node) -> None:
    target, names = to_out_variant(unwrap_op_overload(node.target))
    taken = {a.name for a in target._schema.arguments if a.name not in names}
    kwargs: dict[str, Any] = {k: v for k, v in node.kwargs.items() if k in taken}
    value = node.meta["val"]
    values = [value] if len(names) == 1 else list(value)
    with graph_module.graph.inserting_before(node):
        for name, one in zip(names, values, strict=True):
            kwargs[name] = None if one is None else make_alloc_node(graph_module, one)
    if not target._schema.returns:
        node.replace_all_uses_with(kwargs[names[0]])
    node.target = target
    node.kwargs = kwargs


def make_alloc_node(graph_module: GraphModule, val: Any, tensor_meta: Any = None) -> Node:
    """An `alloc` node, at the graph's point of insertion.

    Args:
        graph_module: has the graph.
        val: the example tensor, or a list of them; symbolic sizes get their bounds.
        tensor_meta: the `TensorMetadata` of a tensor without an example.

    Raises:
        ExportError: neither is given, or a size has no bound.
    """
    known = tensor_meta if val is None else val
    if known is None:
        raise ExportError(
            "a result has neither meta['val'] nor meta['tensor_meta']: its memory is not known",
            code=Code.INVALID_ARGUMENT,
        )
    many = isinstance(known, list | tuple) and not hasattr(known, "shape")
    specs = [
        (tuple(eval_shape_upper_bound(o.shape)), o.dtype) for o in (known if many else [known])
    ]
    node = graph_module.graph.call_function(alloc, (specs if many else specs[0],))
    node.meta["val"] = val
    if tensor_meta is not None:
        node.meta["tensor_meta"] = tensor_meta
    return node
