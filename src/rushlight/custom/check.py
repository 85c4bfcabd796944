"""Checks that an operator, its derived parts and its kernel agree, on example arguments."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._ops import OpOverload

from rushlight.errors import Code, ExportError
from rushlight.ir.operators import out_variant
from rushlight.schema.operators import OperatorSchema


def check_operator(
    op: OpOverload, schema: OperatorSchema, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Check an operator of torch.library.

    Args:
        op: the operator.
        schema: its schema.
        args, kwargs: example arguments, which are not changed.

    Raises:
        ExportError: its parts do not agree.
    """
    _check_torch(op, args, kwargs)
    if any(argument.is_written for argument in schema.out_variant().outs):
        _check_out(op, schema, args, kwargs)


def _check_torch(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """What PyTorch checks: schema, fake implementation, capture with dynamic sizes."""
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    results = torch.library.opcheck(
        op, tuple(_copied(args)), dict(_copied(kwargs)), test_utils=tests, raise_exception=False
    )
    for test, result in results.items():
        if result != "SUCCESS":
            raise _refusal(op, f"PyTorch's {test} fails: {result}")


def _check_out(
    op: OpOverload, schema: OperatorSchema, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """The out-variant gives what the function gives, also into tensors of other sizes."""
    variant = out_variant(op)
    assert variant is not None
    wanted = op(*_copied(args), **_copied(kwargs))
    results = list(pytree.tree_leaves(wanted))
    names = [argument.name for argument in schema.out_variant().outs]
    outs: list[Any] = [torch.empty(0, dtype=result.dtype) for result in results]
    is_list = isinstance(wanted, list)
    given = {names[0]: outs} if is_list else dict(zip(names, outs, strict=True))
    variant(*_copied(args), **_copied(kwargs), **given)
    for i, (out, result) in enumerate(zip(outs, results, strict=True)):
        if not torch.equal(torch.nan_to_num(out), torch.nan_to_num(result)):
            raise _refusal(op, f"the out-variant {variant} departs in result {i}")


def _copied(tree: Any) -> Any:
    return pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else copy.copy(leaf), tree
    )


def _refusal(op: OpOverload, problem: str) -> ExportError:
    return ExportError(f"{op._schema.name}: {problem}", code=Code.INTERNAL)
