"""Arrays and numbers as they are in files, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight import _core
from rushlight.errors import Code, LoadError, RunError
from rushlight.schema import bundled_program as fb
from rushlight.schema.sizes import dtype_name, scalar_type_of, tensor_bytes


def numpy_dtype(name: str, what: str) -> np.dtype[Any]:
    """The NumPy dtype of a name, from ml_dtypes where NumPy has none.

    Args:
        name: as in contracts: "float32", "bfloat16".
        what: what has this dtype, for the message.

    Raises:
        RunError: there is none.
    """
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    except (ImportError, AttributeError, TypeError):
        raise RunError(
            f"NumPy has no {name}, which {what}: install ml_dtypes", code=Code.NOT_SUPPORTED
        ) from None


def tensor_in_file(array: Any, dim_order: Sequence[int]) -> fb.Tensor:
    """An array of NumPy, torch or DLPack with its elements in a dim order.

    Raises:
        _core.Failure: it is none that can be read.
    """
    dtype, sizes, data = _core.array_bytes(array, list(dim_order))
    return fb.Tensor(scalar_type_of(dtype), list(sizes), data, list(dim_order))


def value_in_file(value: Any, kind: str, dim_order: Sequence[int] = ()) -> fb.Value:
    """A value of a kind of the contract; texts and None are not stored."""
    if kind == "tensor":
        return fb.Value(tensor_in_file(value, dim_order))
    if kind == "bool":
        return fb.Value(fb.Bool(bool(value)))
    if kind == "int":
        return fb.Value(fb.Int(int(value)))
    if kind == "float":
        return fb.Value(fb.Double(float(value)))
    return fb.Value()


def value_of(value: fb.Value) -> Any:
    """An array or a number of a file; None for what is not stored.

    Raises:
        LoadError: a tensor's parts contradict each other.
        RunError: NumPy has no such dtype.
    """
    if isinstance(value.val, fb.Tensor):
        return array_of(value.val)
    if isinstance(value.val, fb.Int):
        return value.val.int_val
    if isinstance(value.val, fb.Bool):
        return value.val.bool_val
    return value.val.double_val if isinstance(value.val, fb.Double) else None


def array_of(tensor: fb.Tensor) -> np.ndarray[Any, Any]:
    """A tensor of a file as a read-only array over its bytes.

    Raises:
        LoadError: its parts contradict each other.
        RunError: NumPy has no such dtype.
    """
    check_tensor(tensor)
    dtype = numpy_dtype(dtype_name(tensor.scalar_type), "the file has")
    order = tensor.dim_order or range(len(tensor.sizes))
    flat = np.frombuffer(bytes(tensor.data), dtype, math.prod(tensor.sizes))
    return flat.reshape([tensor.sizes[d] for d in order]).transpose(np.argsort(list(order)))


def check_tensor(tensor: fb.Tensor) -> None:
    """Check that a tensor of a file has the bytes and the dim order that its sizes need.

    Raises:
        LoadError: if not.
    """
    rank, has = len(tensor.sizes), memoryview(tensor.data).nbytes
    name = f"{dtype_name(tensor.scalar_type)} tensor of sizes {tensor.sizes}"
    wanted = -1
    if min(tensor.sizes, default=0) >= 0:
        wanted = tensor_bytes(tensor.scalar_type, tensor.sizes)
    if has != wanted or (tensor.dim_order and sorted(tensor.dim_order) != list(range(rank))):
        raise LoadError(
            f"a {name} has {has} bytes and the dim order {tensor.dim_order}; the file is damaged: "
            "bundle it again",
            code=Code.INVALID_PROGRAM,
        )
