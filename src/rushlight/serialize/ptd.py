"""The `.ptd` file: tensors and other bytes by name, outside of the program that uses them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from rushlight.errors import Code, ExportError, LoadError
from rushlight.schema import flat_tensor
from rushlight.schema.codec import Buffer
from rushlight.schema.flat_tensor import FLAT_TENSOR, FlatTensor, NamedData, TensorLayout
from rushlight.schema.sizes import tensor_bytes
from rushlight.serialize.segments import (
    HEAD_BYTES,
    HEADER_ALIGNMENT,
    Data,
    Key,
    SegmentArea,
    SegmentReader,
    aligned,
    as_bytes,
    with_header,
)

# magic, length, flatbuffer offset, flatbuffer size, segment base, segment bytes
_HEADER = struct.Struct("<4sIQQQQ")
_MAGIC = b"FH01"
_MIN_FILE_BYTES = 64


@dataclass
class NamedTensor:
    """One entry of a data file.

    Attributes:
        data: the bytes, in the layout's dim order.
        layout: dtype, sizes and dim order; None for bytes that only a backend understands.
        alignment: the position in the file is a multiple of this, and of the segments' alignment.
    """

    data: Data
    layout: TensorLayout | None = None
    alignment: int = 1


def write_ptd(tensors: Mapping[str, NamedTensor], *, segment_alignment: int = 128) -> bytes:
    """The bytes of a data file with these entries; equal data is stored once.

    Raises:
        ExportError: an entry's data is not as long as its layout says.
    """
    return b"".join(_image(tensors, segment_alignment))


def write_ptd_to(
    file: BinaryIO, tensors: Mapping[str, NamedTensor], *, segment_alignment: int = 128
) -> int:
    """Like :func:`write_ptd`, into a file and without a copy of the data; returns the bytes."""
    return sum(file.write(chunk) for chunk in _image(tensors, segment_alignment))


def _image(tensors: Mapping[str, NamedTensor], segment_alignment: int) -> Iterator[Buffer]:
    area = SegmentArea(segment_alignment)
    known: dict[Key, list[int]] = {}
    entries: list[NamedData] = []
    for key, tensor in tensors.items():
        _check(key, tensor)
        index = area.add_once(tensor.data, known, tensor.alignment)
        entries.append(NamedData(key, index, tensor.layout))
    flatbuffer = flat_tensor.pack(FlatTensor(0, area.table(), entries))
    header_bytes = aligned(_HEADER.size, HEADER_ALIGNMENT)
    base = aligned(len(flatbuffer) + header_bytes, segment_alignment)
    header = _HEADER.pack(_MAGIC, _HEADER.size, header_bytes, len(flatbuffer), base, area.size)
    head = with_header(flatbuffer, header.ljust(header_bytes, b"\0"))
    yield head.ljust(base, b"\0")
    yield from area.chunks()


def _check(key: str, tensor: NamedTensor) -> None:
    if tensor.layout is None:
        return
    layout = tensor.layout
    wanted = tensor_bytes(layout.scalar_type, layout.sizes)
    size = len(as_bytes(tensor.data))
    if size != wanted:
        raise ExportError(
            f"it has {size} bytes, but {layout.scalar_type.name} {layout.sizes} takes {wanted}",
            code=Code.INVALID_ARGUMENT,
            where=key,
        )
    if sorted(layout.dim_order) != list(range(len(layout.sizes))):
        raise ExportError(
            f"dim order {layout.dim_order} is not an order of {len(layout.sizes)} dimensions",
            code=Code.INVALID_ARGUMENT,
            where=key,
        )


def read_ptd(data: Buffer) -> dict[str, NamedTensor]:
    """The entries of a data file, in its order; their data are views of `data`.

    Raises:
        LoadError: `data` is not a data file, or is damaged.
    """
    view = memoryview(data).cast("B")
    flatbuffer, area = _split(view)
    file = flat_tensor.unpack(flatbuffer)
    segments = SegmentReader(area, file.segments, Code.INVALID_EXTERNAL_DATA)
    tensors: dict[str, NamedTensor] = {}
    for entry in file.named_data:
        if entry.key in tensors:
            raise _error("it is there twice", entry.key)
        content = segments.get(entry.segment_index, entry.key)
        _check_layout(entry, len(content))
        tensors[entry.key] = NamedTensor(content, entry.tensor_layout)
    return tensors


def _split(view: memoryview) -> tuple[memoryview, memoryview]:
    """The flatbuffer and the segment area of a file."""
    if len(view) < _MIN_FILE_BYTES:
        raise _error(f"it has {len(view)} bytes, a .ptd file has at least {_MIN_FILE_BYTES}")
    identifier = bytes(view[4:8])
    if identifier != FLAT_TENSOR.identifier:
        raise _error(f"not a .ptd file: bytes 4 to 7 are {identifier!r} instead of b'FT01'")
    magic, length, offset, size, base, data_size = _HEADER.unpack_from(view, HEAD_BYTES)
    if magic != _MAGIC or length < _HEADER.size:
        raise _error(f"its header starts with {magic!r} and has {length} bytes")
    if offset + size > len(view):
        raise _error(f"it ends at byte {len(view)}, its head alone should reach {offset + size}")
    if base + data_size > len(view):
        raise _error(f"it ends at byte {len(view)}, its data should reach {base + data_size}")
    return view[: offset + size], view[base : base + data_size]


def _check_layout(entry: NamedData, size: int) -> None:
    layout = entry.tensor_layout
    if layout is None:
        return
    if sorted(layout.dim_order) != list(range(len(layout.sizes))):
        raise _error(f"dim order {layout.dim_order} does not fit sizes {layout.sizes}", entry.key)
    try:
        wanted = tensor_bytes(layout.scalar_type, layout.sizes)
    except ValueError as error:
        raise _error(str(error), entry.key) from error
    if wanted > size:
        raise _error(f"its sizes take {wanted} bytes, the file has {size}", entry.key)


def _error(what: str, where: str = "") -> LoadError:
    return LoadError(
        f"{what}; check that the file arrived whole, or export it again",
        code=Code.INVALID_EXTERNAL_DATA,
        where=where,
    )
