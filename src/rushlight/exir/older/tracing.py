"""ExecuTorch's older tracer: the operators that a function of tensors calls, as a graph.

New code captures models by torch.export.export.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.func import functionalize
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from rushlight.errors import Code, ExportError


def flattened_dispatch_trace(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    guards: Any = None,
    in_spec: pytree.TreeSpec | None = None,
    enable_functionalization: bool = True,
) -> tuple[GraphModule, Any]:
    """The operators of ATen that a call of `f` calls, for these sizes and values of numbers.

    Args:
        f: a function, or a module, whose parameters the graph then holds.
        args: its flat arguments; not changed.
        guards: not used.
        in_spec: the structure of its arguments; None if they are flat.
        enable_functionalization: whether calls that write or return views become others; what is
            written to an argument is then copied there at the end.

    Returns:
        A graph with an input `ph_0`, `ph_1`… for each argument, which returns a flat list; and what
        `f` returned.

    Raises:
        ExportError: `args` is no tuple, or `f` returns something that is no tensor.
    """
    if not isinstance(args, tuple):
        raise ExportError(
            f"args is a {type(args).__name__}: give the flat arguments as a tuple",
            code=Code.INVALID_TYPE,
        )

    def call(*leaves: Any) -> Any:
        given = leaves if in_spec is None else pytree.tree_unflatten(list(leaves), in_spec)
        return f(*given)

    def flat(*leaves: Any) -> list[Any]:
        results = pytree.tree_leaves(call(*leaves))
        wrong = [one for one in results if one is not None and not isinstance(one, torch.Tensor)]
        if wrong:
            raise ExportError(
                f"the function returns {wrong[0]!r}, which is no tensor: return tensors alone",
                code=Code.INVALID_TYPE,
            )
        return list(results)

    traced: Any = functionalize(flat, remove="mutations_and_views")
    module = make_fx(traced if enable_functionalization else flat)(*copy.deepcopy(args))
    for number, node in enumerate(module.graph.find_nodes(op="placeholder")):
        node._rename(f"ph_{number}")
        node.target = node.name
    module.graph.eliminate_dead_code()
    module.recompile()
    return module, call(*copy.deepcopy(args))


def dispatch_trace(f: Callable[..., Any], args: tuple[Any, ...]) -> GraphModule:
    """The operators that a call of `f` calls, as a functional graph.

    Args:
        f: a function, or a module.
        args: its arguments by position; not changed.

    Returns:
        A graph of flat inputs and outputs, with `in_spec` and `out_spec`, their structures.

    Raises:
        ExportError: as `flattened_dispatch_trace`.
    """
    leaves, in_spec = pytree.tree_flatten(args)
    module, result = flattened_dispatch_trace(f, tuple(leaves), in_spec=in_spec)
    traced: Any = module
    traced.in_spec, traced.out_spec = in_spec, pytree.tree_structure(result)
    return module


def flatten_output(gm: GraphModule) -> None:
    """Let a graph return a flat list; ExportError if it returns nothing."""
    for node in gm.graph.find_nodes(op="output"):
        node.args = (pytree.tree_leaves(node.args[0]),)
        gm.recompile()
        return
    raise ExportError(f"the graph has no output: {gm.graph}", code=Code.INVALID_ARGUMENT)
