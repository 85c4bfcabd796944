"""The number of bytes of a tensor, the number that must be readable beyond its end, and the names
of element types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rushlight.schema.common import ScalarType

#: The id of ExecuTorch's XNNPACK backend, and how many bytes it may read beyond a tensor's end.
XNNPACK_ID, XNNPACK_OVERREAD = "XnnpackBackend", 64

#: Bytes of one element; the packed types count the unit that torch stores.
ELEMENT_SIZE: Mapping[ScalarType, int] = MappingProxyType(
    {
        ScalarType.BYTE: 1,
        ScalarType.CHAR: 1,
        ScalarType.SHORT: 2,
        ScalarType.INT: 4,
        ScalarType.LONG: 8,
        ScalarType.HALF: 2,
        ScalarType.FLOAT: 4,
        ScalarType.DOUBLE: 8,
        ScalarType.COMPLEX32: 4,
        ScalarType.COMPLEX64: 8,
        ScalarType.COMPLEX128: 16,
        ScalarType.BOOL: 1,
        ScalarType.QINT8: 1,
        ScalarType.QUINT8: 1,
        ScalarType.QINT32: 4,
        ScalarType.BFLOAT16: 2,
        ScalarType.QUINT4x2: 1,
        ScalarType.QUINT2x4: 1,
        ScalarType.BITS16: 2,
        ScalarType.FLOAT8E5M2: 1,
        ScalarType.FLOAT8E4M3FN: 1,
        ScalarType.FLOAT8E5M2FNUZ: 1,
        ScalarType.FLOAT8E4M3FNUZ: 1,
        ScalarType.UINT16: 2,
        ScalarType.UINT32: 4,
        ScalarType.UINT64: 8,
    }
)

_NAMES = {
    ScalarType.BYTE: "uint8",
    ScalarType.CHAR: "int8",
    ScalarType.SHORT: "int16",
    ScalarType.INT: "int32",
    ScalarType.LONG: "int64",
    ScalarType.HALF: "float16",
    ScalarType.FLOAT: "float32",
    ScalarType.DOUBLE: "float64",
    ScalarType.FLOAT8E5M2: "float8_e5m2",
    ScalarType.FLOAT8E4M3FN: "float8_e4m3fn",
    ScalarType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    ScalarType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
}


def dtype_name(scalar_type: ScalarType) -> str:
    """torch's name of an element type: "float32"."""
    return _NAMES.get(scalar_type, scalar_type.name.lower())


_SCALAR_TYPES = {dtype_name(scalar_type): scalar_type for scalar_type in ScalarType}


def scalar_type_of(name: str) -> ScalarType:
    """The element type of torch's name, "float32"; KeyError if there is none."""
    return _SCALAR_TYPES[name]


def tensor_bytes(scalar_type: ScalarType, sizes: Iterable[int]) -> int:
    """The number of bytes of a dense tensor with these sizes.

    Raises:
        ValueError: a size is negative.
    """
    count = ELEMENT_SIZE[scalar_type]
    for size in sizes:
        if size < 0:
            raise ValueError(f"size {size} is negative")
        count *= size
    return count
