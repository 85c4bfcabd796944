"""Operators by name: from a node's target to the kernel that runs it.

A functional ATen operator runs as its out-variant: the overload of the same packet with the same
arguments and trailing keyword-only outputs. Functions on symbolic integers run as `executorch_prim`
operators.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from rushlight.ir.alloc import et_view
from rushlight.ir.control import copy_index
from rushlight.ir.custom_ops import dim_order, quantized  # noqa: F401  (the first registers)
from rushlight.ir.custom_ops.derived import out_variant_of
from rushlight.ir.custom_ops.whole import OUT_VARIANTS

# Operators of the Out dialect that are not torch operators, and the kernels that run them.
OUT_KERNELS: dict[Callable[..., Any], str] = {
    et_view: "executorch_prim::et_view.default",
    copy_index: "executorch_prim::et_copy_index.tensor",
}

# Python functions on symbolic integers that torch.export captures, and the kernels that run them.
PRIMS: dict[Callable[..., Any], str] = {
    operator.add: "executorch_prim::add.Scalar",
    operator.sub: "executorch_prim::sub.Scalar",
    operator.mul: "executorch_prim::mul.Scalar",
    operator.floordiv: "executorch_prim::floordiv.Scalar",
    operator.truediv: "executorch_prim::truediv.Scalar",
    operator.mod: "executorch_prim::mod.Scalar",
    operator.eq: "executorch_prim::eq.Scalar",
    operator.gt: "executorch_prim::gt.Scalar",
    operator.lt: "executorch_prim::lt.Scalar",
    operator.ge: "executorch_prim::ge.Scalar",
    operator.le: "executorch_prim::le.Scalar",
    operator.neg: "executorch_prim::neg.Scalar",
    torch.sym_not: "executorch_prim::sym_not.Scalar",
    torch.sym_max: "executorch_prim::sym_max.Scalar",
    torch.sym_min: "executorch_prim::sym_min.Scalar",
    torch.sym_float: "executorch_prim::sym_float.Scalar",
    torch.sym_int: "executorch_prim::sym_int.Scalar",
    torch.sym_ite: "executorch_prim::sym_ite.Scalar",
    math.ceil: "executorch_prim::ceil.Scalar",
    math.trunc: "executorch_prim::trunc.Scalar",
    round: "executorch_prim::round.Scalar",
}

# Operators that return a scalar and have no out-variant: they write their result value.
SCALAR_RESULTS: dict[OpOverload, str] = {
    torch.ops.aten.sym_size.int: "aten::sym_size.int",
    torch.ops.aten.sym_numel.default: "aten::sym_numel",
    torch.ops.aten._local_scalar_dense.default: "aten::_local_scalar_dense",
}


def runtime_name(target: OpOverload) -> str:
    """The operator's name in a program, such as `aten::add.out`; a default overload adds none."""
    namespace, _, base = target._schema.name.partition("::")
    if namespace == quantized.OUT_NAMESPACE:
        namespace = quantized.NAMESPACE
    overload = target._schema.overload_name
    return f"{namespace}::{base}.{overload}" if overload else f"{namespace}::{base}"


def _signature(target: OpOverload) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in target._schema.arguments if not a.is_out]


def kernel_name(target: Any) -> str | None:
    """The name of the kernel that runs a node of the Out dialect; None if it needs no kernel."""
    if isinstance(target, OpOverload):
        return SCALAR_RESULTS.get(target) or runtime_name(target)
    return OUT_KERNELS.get(target) or PRIMS.get(target)


def is_functional(target: OpOverload) -> bool:
    """True if the operator writes none of its arguments."""
    return not target._schema.is_mutable


_OUT_VARIANTS: dict[OpOverload, OpOverload] = {}


def overloads(target: OpOverload) -> list[OpOverload]:
    """The overloads of an operator, those included that were registered since it was first used."""
    names = torch._C._jit_get_operation(target._schema.name)[1]
    return [getattr(target.overloadpacket, name or "default") for name in names]


def out_variant(target: OpOverload) -> OpOverload | None:
    """The out-variant of a functional operator, or None if there is none."""
    variant = _OUT_VARIANTS.get(target)
    if variant is None and (variant := _find_out_variant(target)) is not None:
        _OUT_VARIANTS[target] = variant
    return variant


def _find_out_variant(target: OpOverload) -> OpOverload | None:
    if target.namespace == quantized.NAMESPACE:
        return quantized.out_variant(target)
    if target in OUT_VARIANTS:
        return OUT_VARIANTS[target]
    # Arguments that only describe the new tensor are dropped: the out argument describes it.
    factory = {"dtype", "layout", "device", "pin_memory"}
    wanted = _signature(target)
    outs = [c for c in overloads(target) if any(a.is_out for a in c._schema.arguments)]
    for relaxed in (False, True):
        for candidate in outs:
            have = _signature(candidate)
            if have == wanted:
                return candidate
            names = {n for n, _ in have}
            if relaxed and have == [a for a in wanted if a[0] in names or a[0] not in factory]:
                return candidate
    return out_variant_of(target)


def out_arguments(target: OpOverload) -> list[str]:
    """The names of an out-variant's out arguments, in schema order."""
    return [a.name for a in target._schema.arguments if a.is_out]


def arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by their names in its schema, with defaults filled in."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    positional = dict(zip((a.name for a in schema), node.args, strict=False))
    return {
        a.name: positional.get(a.name, node.kwargs.get(a.name, a.default_value)) for a in schema
    }
