"""Checks the inputs of one call: why they are refused, and what to do about it.

The extension checks the common call by itself, without a reason; this module finds the reason. For
contracts with relations this module is the only check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight import _core
from rushlight.errors import Code, RunError
from rushlight.runtime.contract import Contract, Dim, Value, symbols_of

_ADVICE_DYNAMIC = "pass another size, or export with dynamic_shapes that allow this one"
_ADVICE_SMALL = (
    'torch.export took it to be 2 or more: export with Dim("name", min={size}, max={max}), or pass '
    "another size"
)


def check_inputs(method: str, contract: Contract, values: Sequence[Any]) -> None:
    """Check flattened inputs against the contract.

    Raises:
        RunError: names the first wrong input, its value, and what is allowed.
    """
    sizes: list[tuple[str, int, Dim]] = []  # the name of a size, its value, its range
    for spec, value in zip(contract.inputs, values, strict=True):
        problem = _check_value(spec, value, sizes, contract.weak)
        if problem is not None:
            code, text = problem
            raise RunError(f"{spec.label}: {text}", code=code, where=method)
    relation = _check_symbols(contract, sizes)
    if relation is not None:
        raise RunError(relation, code=Code.NOT_SUPPORTED, where=method)


Problem = tuple[Code, str] | None


def _check_value(spec: Value, value: Any, sizes: list[tuple[str, int, Dim]], weak: bool) -> Problem:
    if spec.kind == "tensor":
        return _check_tensor(spec, value, sizes)
    if spec.kind == "none":
        if value is None:
            return None
        return Code.INVALID_TYPE, f"got {_what(value)}, only None is allowed, as at export"
    if not _is_kind(spec.kind, value):
        return Code.INVALID_TYPE, f"got {_what(value)}, expected {_article(spec.kind)}"
    if spec.fixed:
        if _equal(spec.kind, value, spec.value, exact=not weak):
            return None
        return (
            Code.INVALID_ARGUMENT,
            f"is {value!r}, but the program was exported with {spec.value!r} and computes with "
            f"that: pass {spec.value!r}, or export a program for {value!r}",
        )
    if spec.range is not None:
        number = int(value)
        if not spec.range.min <= number <= spec.range.max:
            return Code.INVALID_ARGUMENT, f"is {number}, allowed {spec.range}"
        sizes.append((spec.label, number, spec.range))
    return None


def _check_tensor(spec: Value, value: Any, sizes: list[tuple[str, int, Dim]]) -> Problem:
    description = _core.describe_array(value)
    if description is None:
        return (
            Code.INVALID_TYPE,
            f"got {_what(value)}, expected a tensor ({spec.type_text}): pass a NumPy array, a "
            f"torch tensor, or anything with DLPack",
        )
    if isinstance(description, str):
        return Code.NOT_SUPPORTED, description
    dtype, shape = description
    if dtype != spec.dtype:
        how = f"x.astype('{spec.dtype}') (NumPy) or x.to(torch.{spec.dtype})"
        return (
            Code.INVALID_ARGUMENT,
            f"dtype is {dtype}, the program takes {spec.dtype}: convert it with {how}",
        )
    if len(shape) != len(spec.shape):
        return (
            Code.NOT_SUPPORTED,
            f"has {len(shape)} dimensions, {list(shape)}, the program takes {len(spec.shape)}: "
            f"{spec.type_text}",
        )
    for d, (size, dim) in enumerate(zip(shape, spec.shape, strict=True)):
        if not dim.min <= size <= dim.max:
            advice = _ADVICE_DYNAMIC
            if size < dim.min == 2 < dim.max:
                advice = _ADVICE_SMALL.format(size=size, max=dim.max)
            return (
                Code.NOT_SUPPORTED,
                f"size {d} is {size}, allowed {dim} ({spec.type_text}): {advice}",
            )
        sizes.append((f"size {d} of {spec.label}", size, dim))
    return None


def _check_symbols(contract: Contract, sizes: list[tuple[str, int, Dim]]) -> str | None:
    known: dict[str, int] = {}
    first: dict[str, str] = {}
    for what, size, dim in sizes:
        if not dim.symbol:
            continue
        if known.setdefault(dim.symbol, size) != size:
            return (
                f"{what} is {size}, but {first[dim.symbol]} is {known[dim.symbol]}: the program "
                f"takes them only if they are equal"
            )
        first.setdefault(dim.symbol, what)
    for what, size, dim in sizes:
        text = _check_expression(what, size, dim, known)
        if text is not None:
            return text
    for relation in contract.relations:
        if not relation.expression.symbols <= known.keys():
            continue  # about sizes that no input determines
        if not relation.expression(known):
            about = relation.expression.symbols
            measured = ", ".join(
                f"{what} is {size}" for what, size, dim in sizes if about & symbols_of(dim)
            )
            return f"the program takes only inputs with {relation.text}; here {measured}"
    return None


def _check_expression(what: str, size: int, dim: Dim, known: dict[str, int]) -> str | None:
    """Test a derived size, or compute from it the only symbol that is still unknown."""
    if dim.expression is None:
        return None
    unknown = sorted(dim.expression.symbols - known.keys())
    if len(unknown) > 1:
        return None
    if unknown:
        solved = dim.expression.solve(size, unknown[0], known)
        if solved is None:
            return f"{what} is {size}, which is not {dim.expression.text} for any whole number"
        known[unknown[0]] = solved
        return None
    wanted = dim.expression(known)
    if wanted == size:
        return None
    return f"{what} is {size}, but must be {dim.expression.text} = {wanted}"


def _is_kind(kind: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return kind == "bool"
    if kind == "float":
        return isinstance(value, float | int | np.floating | np.integer)
    if kind == "int":
        return hasattr(value, "__index__") and not hasattr(value, "__dlpack__")
    return kind == "str" and isinstance(value, str)


def _equal(kind: str, value: Any, wanted: Any, *, exact: bool) -> bool:
    if kind == "float" and math.isnan(wanted):
        return math.isnan(value)
    if kind != "float" or exact:
        return bool(value == wanted)
    return math.isclose(value, wanted, rel_tol=1e-5, abs_tol=1e-4)


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "int" else f"a {kind}"


def _what(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, np.generic):
        return f"a numpy.{type(value).__name__} ({value!s:.40})"
    text = repr(value) if isinstance(value, bool | int | float | str) else ""
    return f"{_article(type(value).__name__)}" + (f" ({text:.40})" if text else "")
