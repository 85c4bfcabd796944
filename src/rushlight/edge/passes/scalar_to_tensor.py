"""Replace scalar arguments by tensors where the schema says tensor.

`x + 2` is captured as `add.Tensor(x, 2)`. The number becomes a 0-d constant of the dtype that the
operator computes in, so promotion is decided at export and not on the device; a symbolic number
becomes a `scalar_tensor`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.edge.constants import Constants
from rushlight.ir.rewrite import insert

aten = torch.ops.aten


def _dtype_for(node: Node, scalar: Any) -> torch.dtype:
    """The dtype that promoting the operator's tensor arguments and `scalar` gives."""
    dtypes: Any = [
        a.meta["val"]
        for a in node.all_input_nodes
        if isinstance(a.meta.get("val"), torch.Tensor) and a.meta["val"].dtype != torch.bool
    ]
    if node.target in (aten.where.self,):
        return node.meta["val"].dtype  # type: ignore[no-any-return]
    if not dtypes:
        kind = type(scalar) if not isinstance(scalar, Node) else type(scalar.meta["val"])
        return torch.get_default_dtype() if kind in (float, torch.SymFloat) else torch.int64
    number = scalar.meta["val"] if isinstance(scalar, Node) else scalar
    number = 1.5 if isinstance(number, float | torch.SymFloat) else number
    number = 1 if isinstance(number, torch.SymInt) else number
    return torch.result_type(dtypes[0], number)


def _tensor(constants: Constants, node: Node, scalar: Any) -> Node:
    dtype = _dtype_for(node, scalar)
    if isinstance(scalar, Node):
        return insert(
            node.graph, aten.scalar_tensor.default, (scalar,), {"dtype": dtype}, like=node
        )
    return constants.add(torch.tensor(scalar, dtype=dtype), like=node)


def scalar_to_tensor(constants: Constants) -> None:
    """Replace the scalars in `constants.graph`."""
    for node in list(constants.graph.nodes):
        target = node.target
        if node.op != "call_function" or not isinstance(target, OpOverload):
            continue
        for i, (schema, arg) in enumerate(zip(target._schema.arguments, node.args, strict=False)):
            if not isinstance(schema.type, torch.TensorType):
                continue
            symbolic = isinstance(arg, Node) and not isinstance(arg.meta.get("val"), torch.Tensor)
            if symbolic or isinstance(arg, bool | int | float | complex):
                node.update_arg(i, _tensor(constants, node, arg))
