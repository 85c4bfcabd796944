"""Expected outputs: those that are given, checked, or computed by eager or by the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight import _core
from rushlight.errors import Code, Error, ExportError
from rushlight.runtime.arrays import check_tensor, value_of
from rushlight.runtime.contract import Contract, Dim, Value
from rushlight.runtime.load import load
from rushlight.runtime.module import Module
from rushlight.runtime.source import Source
from rushlight.runtime.tolerance import Tolerance, tolerance_of_dtypes
from rushlight.runtime.tree import TreeError
from rushlight.schema import bundled_program as fb
from rushlight.schema.common import ScalarType
from rushlight.schema.sizes import dtype_name

if TYPE_CHECKING:
    from torch.export import ExportedProgram

# Of Python's bool, which is an int as well, more is asked.
_KINDS = {
    "int": int | np.integer,
    "float": int | float | np.integer | np.floating,
    "bool": bool | np.bool_,
}


class Eager:
    """Computes expected outputs with the captured model."""

    def __init__(self, captured: ExportedProgram) -> None:
        from rushlight.check.tolerance import tolerance_of

        self._captured = captured
        self.tolerance: Tolerance = tolerance_of(captured)

    def outputs(self, flat: Sequence[Any], values: Sequence[fb.Value], where: str) -> list[Any]:
        """Eager's results, flattened.

        Args:
            flat: the inputs.
            values: the same as in the file.
            where: the case, for messages.

        Raises:
            ExportError: eager refuses the inputs.
        """
        import torch

        from rushlight.check.eager import flat_results

        mine = [in_torch(v) if isinstance(v.val, fb.Tensor) else x
                for v, x in zip(values, flat, strict=True)]  # fmt: skip
        try:
            results = flat_results(self._captured, mine)
        except (RuntimeError, AssertionError, ValueError, IndexError) as error:
            raise ExportError(
                f"eager fails on these inputs: {error}", code=Code.INVALID_ARGUMENT, where=where
            ) from error
        return [
            value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value
            for value in results
        ]


def in_torch(value: fb.Value) -> Any:
    """A value of a file, as `value_of`, with torch's tensors.

    Raises:
        LoadError: a tensor's parts contradict each other.
    """
    import torch

    from rushlight.ir.spec import SCALAR_TYPES

    tensor = value.val
    if not isinstance(tensor, fb.Tensor):
        return value_of(value)
    check_tensor(tensor)
    dtype = next(d for d, number in SCALAR_TYPES.items() if number == tensor.scalar_type)
    order = list(tensor.dim_order or range(len(tensor.sizes)))
    if 0 in tensor.sizes:
        return torch.empty(tensor.sizes, dtype=dtype)
    flat = torch.frombuffer(bytearray(tensor.data), dtype=dtype)
    placed = flat.reshape([tensor.sizes[d] for d in order])
    return placed.permute([order.index(d) for d in range(len(order))])


class Runs:
    """Computes expected outputs with the program itself, which is loaded when it is needed."""

    def __init__(self, program: Source, data: Source | None) -> None:
        self._program, self._data = program, data
        self._modules: dict[str, Module] = {}

    def outputs(self, method: str, flat: Sequence[Any], where: str) -> list[Any]:
        """The results of a method's first call after a load, flattened.

        Raises:
            ExportError: the program cannot be loaded here, or fails.
        """
        try:
            if method not in self._modules:
                self._modules[method] = load(self._program, methods=[method], data=self._data)
            module = self._modules[method].clone()
            return module[method].call_values(list(flat))
        except Error as error:
            raise ExportError(
                f"no outputs are expected, and the program cannot compute them: {error}; give "
                f"expected=",
                code=error.code,
                where=where,
            ) from error


def given_outputs(contract: Contract, expected: Any, where: str) -> list[Any]:
    """The leaves of outputs that a case gives.

    Raises:
        ExportError: they are not arranged as the method returns them.
    """
    count = len(contract.outputs)
    leaves: list[Any] = []
    try:
        contract.out_spec.flatten(expected, "the expected outputs", leaves)
    except TreeError as error:
        if isinstance(expected, list | tuple) and len(expected) == count:
            return list(expected)
        raise ExportError(
            f"{error}: give what the method returns, or a flat list of its {count} outputs",
            code=Code.INVALID_ARGUMENT,
            where=where,
        ) from None
    if count == 1 and isinstance(expected, list | tuple) and len(expected) == 1:
        return list(expected)
    return leaves


def check_output(spec: Value, value: Any, known: Mapping[str, int], output: str) -> str | None:
    """Why an expected output cannot come from the program, or None.

    Args:
        spec: the output in the contract.
        value: what is expected.
        known: the sizes that the inputs have, by symbol.
        output: its name in the message.
    """
    if spec.kind == "tensor":
        described = _core.describe_array(value)
        if not isinstance(described, tuple):
            what = described or f"an object of type {type(value).__name__} is expected"
            return f"{output}: {what}, the program gives {spec.type_text}"
        dtype, shape = described
        fits = dtype == spec.dtype and len(shape) == len(spec.shape)
        for size, dim in zip(shape, spec.shape, strict=False):
            fits = fits and dim.min <= size <= dim.max and _size(known, dim) in (None, size)
        if fits:
            return None
        return f"{output}: {dtype}{list(shape)} is expected, the program gives {_type(known, spec)}"
    if spec.kind == "none":
        return None if value is None else f"{output}: the program gives None"
    if spec.kind in ("int", "float", "bool"):
        is_kind = isinstance(value, _KINDS[spec.kind])
        if is_kind and isinstance(value, bool | np.bool_) == (spec.kind == "bool"):
            return None
        return f"{output}: {value!r} is expected, the program gives {spec.type_text}"
    return f"{output} is of kind {spec.kind}, which a bundled program cannot hold"


def _size(known: Mapping[str, int], dim: Dim) -> int | None:
    """The size that follows from the inputs' sizes; None if they do not tell it."""
    if dim.symbol in known:
        return known[dim.symbol]
    if dim.expression is None or not dim.expression.symbols <= known.keys():
        return None
    return int(dim.expression(dict(known)))


def _type(known: Mapping[str, int], spec: Value) -> str:
    """The type of an output, with the sizes that follow from the inputs'."""
    sizes = [_size(known, dim) for dim in spec.shape]
    if all(size is None for size in sizes):
        return spec.type_text
    texts = [str(d if n is None else n) for d, n in zip(spec.shape, sizes, strict=True)]
    return f"{spec.dtype}[{', '.join(texts)}] for these inputs"


def symbols_in(contract: Contract, flat: Sequence[Any]) -> dict[str, int]:
    """The sizes of checked inputs, by symbol."""
    known: dict[str, int] = {}
    for spec, value in zip(contract.inputs, flat, strict=True):
        if spec.kind == "tensor":
            described = _core.describe_array(value)
            shape = described[1] if isinstance(described, tuple) else ()
            known |= {d.symbol: n for d, n in zip(spec.shape, shape, strict=True) if d.symbol}
        elif spec.range is not None and spec.range.symbol:
            known[spec.range.symbol] = int(value)
    return known


def default_tolerances(
    tolerance: Tolerance | None, values: Sequence[fb.Value]
) -> tuple[list[float], list[float]]:
    """The rtol and atol of expected outputs, one for each.

    Args:
        tolerance: of the whole program; None: that of the outputs' own dtypes.
        values: the outputs in the file.
    """
    tensors = [value.val for value in values if isinstance(value.val, fb.Tensor)]
    chosen = tolerance or tolerance_of_dtypes(dtype_name(t.scalar_type) for t in tensors)
    return [0.0] * len(values), [chosen.allowed(_numbers(value)) for value in values]


def _numbers(value: fb.Value) -> np.ndarray[Any, Any]:
    """The numbers of a value; whole ones for what has no order."""
    if isinstance(value.val, fb.Double):
        return np.array([value.val.double_val])
    if not isinstance(value.val, fb.Tensor):
        return np.empty(0, np.int64)
    data, kind = value.val.data, value.val.scalar_type
    if kind == ScalarType.BFLOAT16:
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    name = dtype_name(kind)
    if name in ("float16", "float32", "float64", "complex64", "complex128"):
        return np.frombuffer(data, name)
    return np.empty(0, np.int64)
