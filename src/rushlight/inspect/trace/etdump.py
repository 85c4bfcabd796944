"""Reads ETDump files and the values in their debug buffers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.errors import Code, LoadError
from rushlight.inspect.trace.cut import read_cut
from rushlight.schema import etdump as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.common import ScalarType
from rushlight.schema.etdump import ValueType

DTYPES = {
    ScalarType.BYTE: np.uint8,
    ScalarType.CHAR: np.int8,
    ScalarType.SHORT: np.int16,
    ScalarType.INT: np.int32,
    ScalarType.LONG: np.int64,
    ScalarType.HALF: np.float16,
    ScalarType.FLOAT: np.float32,
    ScalarType.DOUBLE: np.float64,
    ScalarType.COMPLEX64: np.complex64,
    ScalarType.COMPLEX128: np.complex128,
    ScalarType.BOOL: np.bool_,
    ScalarType.BITS16: np.uint16,
    ScalarType.UINT16: np.uint16,
    ScalarType.UINT32: np.uint32,
    ScalarType.UINT64: np.uint64,
}
"""NumPy's dtypes; it has none for bfloat16."""
_IDENTIFIER = b"ED00"


def read_etdump(source: str | os.PathLike[str] | Buffer) -> fb.ETDump:
    """The content of an ETDump, of Rushlight or ExecuTorch; of one that was cut, with a
    RuntimeWarning, what is there (see `read_cut`).

    Args:
        source: a path, or the content of a file; with or without its size in front.

    Raises:
        LoadError: it cannot be read, or is damaged.
    """
    data = source
    if isinstance(data, str | os.PathLike):
        try:
            data = Path(data).read_bytes()
        except OSError as error:
            raise LoadError(
                f"the trace cannot be read: {error.strerror}", code=Code.ACCESS_FAILED,
                where=os.fspath(source) if isinstance(source, str | os.PathLike) else "",
            ) from error  # fmt: skip
    view = memoryview(data)
    if bytes(view[8:12]) == _IDENTIFIER:
        size = int.from_bytes(view[:4], "little")
        view = view[4:]
        if size > len(view):
            return _cut(view, size)
        if size < len(view):
            raise LoadError(
                f"the trace has {len(view) - size:,} bytes behind its end; give a file that holds "
                "one trace alone",
                code=Code.INVALID_EXTERNAL_DATA,
            )
    elif bytes(view[4:8]) != _IDENTIFIER:
        raise LoadError(
            "this is no ETDump: its identifier is missing; give a file that Trace.save, a runner's "
            "--etdump or ExecuTorch wrote",
            code=Code.INVALID_EXTERNAL_DATA,
        )
    return fb.unpack(view)


def _cut(view: memoryview, size: int) -> fb.ETDump:
    """What is there of a dump of `size` bytes."""
    there = f"the trace is cut: {len(view):,} of {size:,} bytes are there"
    advice = "copy the whole file, or record it again"
    try:
        dump, lost = read_cut(view)
    except LoadError:
        raise LoadError(
            f"{there}, too few to show anything of it; {advice}", code=Code.INVALID_EXTERNAL_DATA
        ) from None
    warnings.warn(
        f"{there}. Lost: {lost}; what is left is shown. To see all, {advice}",
        RuntimeWarning,
        stacklevel=3,
    )
    return dump


def value_of(value: fb.Value, buffer: Buffer | None) -> Any:
    """A recorded value.

    Args:
        value: as the trace has it.
        buffer: the debug buffer; None if there is none.

    Returns:
        An array, a list of arrays, a number or a text; None for a tensor without a buffer.
        bfloat16 becomes float32.

    Raises:
        LoadError: the buffer is not that of the trace.
    """
    kind = value.val
    if kind == ValueType.TENSOR and value.tensor is not None:
        return _array(value.tensor, buffer)
    if kind == ValueType.TENSOR_LIST and value.tensor_list is not None:
        return [_array(tensor, buffer) for tensor in value.tensor_list.tensors]
    if kind == ValueType.INT and value.int_value is not None:
        return value.int_value.int_val
    if kind == ValueType.BOOL and value.bool_value is not None:
        return value.bool_value.bool_val
    if kind == ValueType.FLOAT and value.float_value is not None:
        return value.float_value.float_val
    if kind == ValueType.DOUBLE and value.double_value is not None:
        return value.double_value.double_val
    return None


def _array(tensor: fb.Tensor, buffer: Buffer | None) -> np.ndarray[Any, Any] | None:
    is_bfloat16 = tensor.scalar_type == ScalarType.BFLOAT16
    dtype = np.dtype(np.uint16 if is_bfloat16 else DTYPES.get(tensor.scalar_type, np.void))
    if dtype == np.void:
        raise LoadError(
            f"the trace has a tensor of dtype {tensor.scalar_type.name}, which cannot be shown",
            code=Code.NOT_SUPPORTED,
        )
    sizes, strides = tensor.sizes, tensor.strides
    if any(size < 0 for size in sizes) or len(strides) != len(sizes) or min(strides, default=0) < 0:
        raise _not_its_buffer(f"a tensor has sizes {sizes} and strides {strides}")
    if 0 in sizes:
        return np.empty(sizes, np.float32 if is_bfloat16 else dtype)
    if buffer is None:
        return None
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    size = len(memoryview(buffer))
    if tensor.offset < 0 or tensor.offset + (last + 1) * dtype.itemsize > size:
        raise _not_its_buffer(
            f"a tensor of sizes {sizes} begins at byte {tensor.offset} of {size} bytes"
        )
    flat = np.frombuffer(buffer, dtype, last + 1, tensor.offset)
    array = np.lib.stride_tricks.as_strided(
        flat, sizes, [stride * dtype.itemsize for stride in strides], writeable=False
    )
    if is_bfloat16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _not_its_buffer(what: str) -> LoadError:
    return LoadError(
        f"{what}: the debug buffer is not that of this trace; give the file that was written with "
        "it",
        code=Code.INVALID_EXTERNAL_DATA,
    )
