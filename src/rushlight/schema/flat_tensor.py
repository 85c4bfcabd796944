"""The data file (.ptd): tensors and other bytes by name, for programs that keep weights outside.

Made from schema/flat_tensor.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rushlight.errors import Code
from rushlight.schema import codec
from rushlight.schema.common import DataSegment as DataSegment
from rushlight.schema.common import ScalarType as ScalarType


@dataclass(slots=True)
class TensorLayout:
    """How the bytes of a tensor are read."""

    scalar_type: ScalarType = ScalarType.BYTE
    sizes: list[int] = field(default_factory=list)
    #: The dimensions from the outermost in memory to the innermost; as long as sizes.
    dim_order: list[int] = field(default_factory=list)


@dataclass(slots=True)
class NamedData:
    """A segment by name; several names may share one."""

    key: str = ""
    segment_index: int = 0
    #: Absent for bytes that only a backend understands.
    tensor_layout: TensorLayout | None = None


@dataclass(slots=True)
class FlatTensor:
    """The whole file."""

    version: int = 0
    segments: list[DataSegment] = field(default_factory=list)
    named_data: list[NamedData] = field(default_factory=list)


_TABLES: Mapping[type, tuple[codec.Field, ...]] = {
    FlatTensor: (
        codec.Scalar("version", 0, "I", 0),
        codec.Children("segments", 1, DataSegment),
        codec.Children("named_data", 2, NamedData),
    ),
    DataSegment: (
        codec.Scalar("offset", 0, "Q", 0),
        codec.Scalar("size", 1, "Q", 0),
    ),
    NamedData: (
        codec.Text("key", 0),
        codec.Scalar("segment_index", 1, "I", 0),
        codec.Child("tensor_layout", 2, TensorLayout, optional=True),
    ),
    TensorLayout: (
        codec.Scalar("scalar_type", 0, "b", ScalarType.BYTE, ScalarType),
        codec.Numbers("sizes", 1, "i"),
        codec.Numbers("dim_order", 2, "B"),
    ),
}

FLAT_TENSOR = codec.Format(FlatTensor, b"FT01", _TABLES, Code.INVALID_EXTERNAL_DATA)


def pack(flat_tensor: FlatTensor, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `flat_tensor`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(FLAT_TENSOR, flat_tensor, alignments)


def unpack(data: codec.Buffer) -> FlatTensor:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    flat_tensor = codec.unpack(FLAT_TENSOR, data)
    assert isinstance(flat_tensor, FlatTensor)
    return flat_tensor
