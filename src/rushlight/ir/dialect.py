"""The dialects that a program passes through, each a table of checks on one node.

ATen      as torch.export captures it: any operator of torch, higher-order ones included
Core ATen functional operators that no decomposition applies to any more
Edge      functional, views as copies, tensors where the schema says tensor, layouts as dim
          orders; every operator has an out-variant
Out       every operator writes tensors that an `alloc` node made
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import Node

from rushlight.ir.alloc import alloc, call_delegate, et_view
from rushlight.ir.control import FLOW, copy_index
from rushlight.ir.operators import PRIMS, SCALAR_RESULTS, is_functional, out_variant

Check = Callable[[Node], str | None]

# Operators that return views; the Edge dialect has `<name>_copy` of each instead.
VIEW_NAMES = frozenset(
    """
    aten::alias aten::as_strided aten::diagonal aten::expand aten::permute aten::select
    aten::slice aten::split aten::split_with_sizes aten::squeeze aten::t aten::transpose
    aten::unbind aten::unfold aten::unsqueeze aten::view aten::view_as_complex
    aten::view_as_real aten::detach
    """.split()
)
# Operators that set a layout; the Edge dialect has `dim_order_ops` instead.
LAYOUT_OPERATORS = (torch.ops.aten._to_copy.default, torch.ops.aten.clone.default)
LAYOUT_NAMES = frozenset(operator._schema.name for operator in LAYOUT_OPERATORS)


@dataclass(frozen=True)
class Dialect:
    """A name and the checks that every `call_function` node must pass."""

    name: str
    checks: tuple[Check, ...]

    def fault(self, node: Node) -> str | None:
        """The reason why `node` is not of this dialect, or None."""
        for check in self.checks:
            reason = check(node)
            if reason is not None:
                return reason
        return None

    def lacks_operator(self, node: Node) -> bool:
        """Whether `node` fails because nothing can run its operator, not because of how it was
        made."""
        failed = next((check for check in self.checks if check(node) is not None), None)
        return failed in (_known_target, _captured_target, _has_out_variant)


def _known_target(node: Node) -> str | None:
    target = node.target
    if isinstance(target, OpOverload | HigherOrderOperator) or target is operator.getitem:
        return None
    if target in PRIMS or target in (alloc, call_delegate, et_view, copy_index, *FLOW):
        return None
    return f"{target} is not an operator that a program can hold"


def _captured_target(node: Node) -> str | None:
    # vmap and similar functions are captured as calls, which decomposition resolves.
    if getattr(node.target, "__module__", "").startswith("torch._functorch"):
        return None
    return _known_target(node)


def _has_value(node: Node) -> str | None:
    if "val" in node.meta:
        return None
    if not _returns_something(node):
        return None
    return 'it has no example value in meta["val"]: a pass made the node without one'


def _returns_something(node: Node) -> bool:
    return not isinstance(node.target, OpOverload) or bool(node.target._schema.returns)


def _functional(node: Node) -> str | None:
    if isinstance(node.target, OpOverload) and not is_functional(node.target):
        return "it writes one of its arguments: only functional operators are allowed here"
    return None


def _no_view(node: Node) -> str | None:
    target = node.target
    if isinstance(target, OpOverload) and target._schema.name in VIEW_NAMES:
        return f"it returns a view; the Edge dialect has {target._schema.name}_copy instead"
    return None


def _layout_as_dim_order(node: Node) -> str | None:
    target = node.target
    if isinstance(target, OpOverload) and target._schema.name in LAYOUT_NAMES:
        return "it takes a memory format; the Edge dialect has dim_order_ops instead"
    return None


def _is_tensor(arg: Any) -> bool:
    if not isinstance(arg, Node):
        return False
    return isinstance(arg.meta.get("val", torch.empty(0)), torch.Tensor)


def _tensors_are_tensors(node: Node) -> str | None:
    target = node.target
    if not isinstance(target, OpOverload):
        return None
    for schema, arg in zip(target._schema.arguments, node.args, strict=False):
        if isinstance(schema.type, torch.TensorType) and not _is_tensor(arg):
            return f"argument {schema.name!r} must be a tensor, got {arg!r}"
    return None


def _has_out_variant(node: Node) -> str | None:
    target = node.target
    if not isinstance(target, OpOverload) or target in SCALAR_RESULTS:
        return None
    if not target._schema.returns or out_variant(target) is not None:
        return None
    text = "it has no out-variant, so no kernel can run it"
    if target.namespace in ("aten", "prims", "prim"):
        return text
    name = target._schema.name
    return (
        f"{text}: give {name} a decomposition (EdgeCompileConfig(decompositions=...)), or define "
        f"{name}.out with torch.library, with the same arguments and *, Tensor(a!) out behind them"
    )


def _writes_allocated(node: Node) -> str | None:
    target = node.target
    if not isinstance(target, OpOverload) or target in SCALAR_RESULTS:
        return None
    outs = [a for a in target._schema.arguments if a.is_out]
    if not outs:
        effect = target._schema.is_mutable or not target._schema.returns
        return None if effect else "it is not an out-variant"
    for schema in outs:
        argument = node.kwargs.get(schema.name)
        for one in argument if isinstance(argument, list | tuple) else [argument]:
            if not isinstance(one, Node) or one.target is not alloc:
                return f"out argument {schema.name!r} must come from alloc, got {one!r}"
    return None


ATEN = Dialect("ATen", (_captured_target,))
CORE_ATEN = Dialect("Core ATen", (_known_target, _has_value, _functional))
EDGE = Dialect(
    "Edge",
    (
        _known_target,
        _has_value,
        _functional,
        _no_view,
        _layout_as_dim_order,
        _tensors_are_tensors,
        _has_out_variant,
    ),
)
OUT = Dialect("Out", (_known_target, _writes_allocated))
