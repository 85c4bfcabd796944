"""The dynamic sizes of a captured program as `dynamic_shapes`, to capture it again."""

from __future__ import annotations

from typing import Any

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind


def shapes_of(program: ExportedProgram) -> Any:
    """`dynamic_shapes` with the dynamic sizes of `program`; None if it has none.

    Sizes with one symbol get one `Dim` of the same range; a size that is computed from others is
    left to torch, which finds the relation again.
    """
    if not program.range_constraints or program.example_inputs is None:
        return None
    kinds = program.graph_signature.input_specs
    placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
    values = [
        node.meta["val"]
        for node, spec in zip(placeholders, kinds, strict=True)
        if spec.kind == InputKind.USER_INPUT
    ]
    dims: dict[Any, Any] = {}
    leaves = [_shape(value, program, dims) for value in values]
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    names = list(inputs_of(program, tuple(args), kwargs))
    return dict(zip(names, [*args, *kwargs.values()], strict=True))


def inputs_of(program: ExportedProgram, args: tuple[Any, ...], kwargs: Any) -> list[str]:
    """The names of the arguments in a call of the captured module."""
    module: Any = program.module(check_guards=False)
    parameters = list(module.graph._codegen.pytree_info.orig_args)
    return [*parameters[: len(args)], *kwargs]


def _shape(value: Any, program: ExportedProgram, dims: dict[Any, Any]) -> Any:
    if isinstance(value, torch.SymInt):
        return _dim(value, program, dims)
    if not isinstance(value, torch.Tensor):
        return None
    sizes: list[Any] = list(value.shape)
    return {
        i: _dim(size, program, dims)
        for i, size in enumerate(sizes)
        if isinstance(size, torch.SymInt)
    }


def _dim(size: torch.SymInt, program: ExportedProgram, dims: dict[Any, Any]) -> Any:
    expression = size.node.expr
    if not isinstance(expression, sympy.Symbol):
        return Dim.AUTO
    if expression not in dims:
        limits = program.range_constraints[expression]
        low, high = int(limits.lower), limits.upper
        bounded = high.is_Integer and int(high) < 2**31
        dims[expression] = Dim(str(expression), min=low, max=int(high) if bounded else None)
    return dims[expression]
