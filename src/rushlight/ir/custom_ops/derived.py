"""Out-variants of operators that have none: derived from their schemas.

An operator of torch.library is a function, and a program calls out-variants. The derived one has
the arguments of the function and the results behind them (`rushlight.schema.operators`); in torch
it computes the function, and copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from rushlight.schema.operators import OperatorSchema

# Torch's own namespaces, whose operators are as they are.
TORCH = frozenset({"aten", "prims", "prim", "higher_order", "quantized_decomposed"})
_LIBRARIES: dict[str, torch.library.Library] = {}  # what they define is gone with them


def schema_of(target: OpOverload) -> OperatorSchema:
    """The schema of an operator."""
    return OperatorSchema.read(str(target._schema))


def define(schema: OperatorSchema, compute: Callable[..., Any]) -> OpOverload:
    """Define a further overload of an operator, unless there is one of that name.

    Args:
        schema: the overload's schema.
        compute: the function that computes it.
    """
    packet = getattr(getattr(torch.ops, schema.namespace), schema.base)
    if schema.overload not in packet.overloads():
        library = _LIBRARIES.get(schema.namespace)
        if library is None:
            library = torch.library.Library(schema.namespace, "FRAGMENT")
            _LIBRARIES[schema.namespace] = library
        library.define(str(schema).partition("::")[2])
        library.impl(f"{schema.base}.{schema.overload}", compute, "CompositeExplicitAutograd")
    return getattr(packet, schema.overload)  # type: ignore[no-any-return]


def out_variant_of(target: OpOverload) -> OpOverload | None:
    """The out-variant of an operator of torch.library that has none, which is defined here.

    Returns:
        The out-variant; the operator itself if it returns only what it writes; None for an operator
        of torch itself, and for one whose results a kernel cannot write, which are no tensors.
    """
    if target.namespace in TORCH:
        return None
    try:
        schema = schema_of(target).out_variant()
    except ValueError:
        return None
    if schema.overload == target._schema.overload_name:
        return target
    outs = [argument.name for argument in schema.outs]
    is_list = schema.outs[0].type.endswith("]")

    def compute(*args: Any, **kwargs: Any) -> Any:
        written = [kwargs.pop(name) for name in outs]
        results = target(*args, **kwargs)
        if is_list:
            pairs = zip(written[0], results, strict=True)
        else:
            pairs = zip(written, results if len(outs) > 1 else [results], strict=True)
        for out, result in pairs:
            _write(schema.name, out, result)
        return None if is_list else written[0] if len(outs) == 1 else tuple(written)

    return define(schema, compute)


def _write(name: str, out: torch.Tensor, result: torch.Tensor) -> None:
    if out.dtype != result.dtype:
        raise RuntimeError(f"{name}: the result is {result.dtype}, and out is {out.dtype}")
    if out.shape != result.shape:
        out.resize_(result.shape)
    out.copy_(result)
