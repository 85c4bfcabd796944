"""The header of a GGUF file: its metadata, and where its tensors lie.

Every length is checked against the bytes that are left before anything is read or allocated, so
that what a header takes in memory is bounded by its size in the file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.errors import Code, ExportError
from rushlight.llm.gguf.types import OTHERS, TYPES, TensorType

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = "general.alignment"
_MOST_DIMENSIONS = 4
_TEXT, _ARRAY = 8, 9
_SCALARS = dict(enumerate("<u1 <i1 <u2 <i2 <u4 <i4 <f4 ?".split()))
_SCALARS |= {10: "<u8", 11: "<i8", 12: "<f8"}
_LEAST_ENTRY, _LEAST_TENSOR, _LEAST_TEXT = 13, 24, 8  # bytes


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies.

    Attributes:
        type: of its elements.
        shape: as torch has it, rows first; in a file the elements of a row come first.
        offset: of its first byte in the file.
        size: its bytes.
    """

    type: TensorType
    shape: tuple[int, ...]
    offset: int
    size: int


@dataclass(frozen=True)
class Header:
    """What a file says before its tensors.

    Attributes:
        metadata: int, float, bool, str, and lists of str or arrays of numbers, by key.
        tensors: by name, in the file's order.
    """

    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]


def read_header(data: memoryview, where: str) -> Header:
    """Read and check a header.

    Args:
        data: the whole file.
        where: the file's name, for messages.

    Raises:
        ExportError: it is no GGUF file, is damaged or cut, or has a tensor of a type that is not
            supported; the error names the field.
    """
    return _Reader(data, where).read()


def damaged(where: str, what: str) -> ExportError:
    """The error for a file whose bytes contradict each other."""
    return ExportError(
        f"{where} is damaged: {what}; copy or download it again", code=Code.INVALID_EXTERNAL_DATA
    )


class _Reader:
    """Reads a header from its start to its end.

    Args:
        data: the whole file.
        where: the file's name, for messages.
    """

    def __init__(self, data: memoryview, where: str) -> None:
        self._data, self._where, self._at = data, where, 0

    def read(self) -> Header:
        """The header."""
        if bytes(self._data[:4]) != MAGIC:
            raise ExportError(
                f"{self._where} is no GGUF file: it begins with {bytes(self._data[:4])!r}, not "
                f"with {MAGIC!r}",
                code=Code.INVALID_EXTERNAL_DATA,
            )
        self._at = len(MAGIC)
        self._check_version(self._number("<I", "the version"))
        tensors = self._count("the number of tensors", _LEAST_TENSOR)
        entries = self._count("the number of metadata entries", _LEAST_ENTRY)
        metadata: dict[str, Any] = {}
        for i in range(entries):
            key = self._text(f"the key of metadata entry {i}")
            if key in metadata:
                raise self._damaged(f"the metadata has {key!r} twice")
            metadata[key] = self._value(self._number("<I", f"the type of {key!r}"), key)
        infos = [self._tensor(i) for i in range(tensors)]
        return Header(metadata, self._placed(infos, metadata))

    def _check_version(self, version: int) -> None:
        if version in _VERSIONS:
            return
        if version & 0xFFFF == 0:
            fault = "its numbers are big-endian: convert it with gguf-convert-endian"
        else:
            fault = f"it has version {version}: convert the model again with a newer llama.cpp"
        raise ExportError(
            f"{self._where} cannot be read: {fault}; supported are little-endian files of the "
            f"versions {' and '.join(map(str, _VERSIONS))}",
            code=Code.NOT_SUPPORTED,
        )

    def _damaged(self, what: str) -> ExportError:
        return damaged(self._where, what)

    def _take(self, size: int, what: str) -> memoryview:
        if size > len(self._data) - self._at:
            raise self._damaged(
                f"{what} needs {size} bytes at byte {self._at}, and the file has {len(self._data)}"
            )
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self, form: str, what: str) -> int:
        value: int = struct.unpack(form, self._take(struct.calcsize(form), what))[0]
        return value

    def _count(self, what: str, least: int) -> int:
        """A number of things that take at least `least` bytes each."""
        count = self._number("<Q", what)
        left = len(self._data) - self._at
        if count > left // least:
            raise self._damaged(f"{what} is {count}, and {left} bytes are left for them")
        return count

    def _text(self, what: str) -> str:
        size = self._number("<Q", f"the length of {what}")
        try:
            return str(self._take(size, what), "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(f"{what} is not UTF-8 ({error.reason})") from None

    def _value(self, kind: int, key: str) -> Any:
        if kind == _TEXT:
            return self._text(repr(key))
        if kind == _ARRAY:
            return self._array(key)
        return self._numbers(kind, 1, key)[0].item()

    def _array(self, key: str) -> Any:
        kind = self._number("<I", f"the type of the elements of {key!r}")
        if kind == _TEXT:
            count = self._count(f"the number of elements of {key!r}", _LEAST_TEXT)
            return [self._text(f"element {i} of {key!r}") for i in range(count)]
        return self._numbers(kind, self._count(f"the number of elements of {key!r}", 1), key)

    def _numbers(self, kind: int, count: int, key: str) -> Any:
        if kind not in _SCALARS:
            raise self._damaged(f"{key!r} has values of the type {kind}, which does not exist")
        dtype = np.dtype(_SCALARS[kind])
        taken = self._take(count * dtype.itemsize, repr(key))
        if dtype == np.bool_:
            return np.frombuffer(taken, np.uint8) != 0
        return np.frombuffer(taken, dtype)

    def _tensor(self, i: int) -> tuple[str, int, tuple[int, ...], int]:
        """Name, number of the type, shape and offset of a tensor."""
        name = self._text(f"the name of tensor {i}")
        rank = self._number("<I", f"the number of dimensions of tensor {name!r}")
        if not 1 <= rank <= _MOST_DIMENSIONS:
            raise self._damaged(f"tensor {name!r} has {rank} dimensions")
        sizes = [self._number("<Q", f"the sizes of tensor {name!r}") for _ in range(rank)]
        kind = self._number("<I", f"the type of tensor {name!r}")
        offset = self._number("<Q", f"the offset of tensor {name!r}")
        return name, kind, tuple(reversed(sizes)), offset

    def _placed(
        self, infos: list[tuple[str, int, tuple[int, ...], int]], metadata: dict[str, Any]
    ) -> dict[str, TensorInfo]:
        """The tensors, whose bytes begin after the header."""
        alignment = metadata.get(_ALIGNMENT, 32)
        if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
            raise self._damaged(f"{_ALIGNMENT!r} is {alignment!r}, and must be a power of two")
        start = self._at + -self._at % alignment
        placed: dict[str, TensorInfo] = {}
        for name, kind, shape, offset in infos:
            if name in placed:
                raise self._damaged(f"it has two tensors {name!r}")
            if offset % alignment:
                raise self._damaged(
                    f"the offset {offset} of tensor {name!r} is no multiple of {alignment}"
                )
            placed[name] = self._info(name, kind, shape, start + offset)
        return placed

    def _info(self, name: str, kind: int, shape: tuple[int, ...], start: int) -> TensorInfo:
        if kind not in TYPES:
            called = OTHERS.get(kind, f"of an unknown type, {kind}")
            supported = ", ".join(one.name for one in TYPES.values())
            raise ExportError(
                f"tensor {name!r} of {self._where} is {called}; supported are {supported}: make "
                f"the file again with one of these, such as llama-quantize does from F16",
                code=Code.NOT_SUPPORTED,
            )
        found, count = TYPES[kind], 1
        for size in shape:
            count *= size
        if 0 in shape or shape[-1] % found.block:
            raise self._damaged(
                f"tensor {name!r} has the shape {list(shape)}, and rows of {found.name} are "
                f"multiples of {found.block}"
            )
        size = count // found.block * found.block_bytes
        if size > len(self._data) - start:
            raise self._damaged(
                f"tensor {name!r} needs {size} bytes at byte {start}, and the file has "
                f"{len(self._data)}"
            )
        return TensorInfo(found, shape, start, size)
