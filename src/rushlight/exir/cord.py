"""Bytes that grow at their end without being copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

Bytes: TypeAlias = bytes | bytearray | memoryview


class Cord:
    """Pieces of bytes, one after the other, which are joined when they are written.

    Args:
        data: the first piece, or a cord whose pieces are shared.
    """

    def __init__(self, data: Bytes | Cord | None = None) -> None:
        self._buffers: list[Bytes] = []
        self._byte_size = 0
        if data is not None:
            self.append(data)

    def __len__(self) -> int:
        return self._byte_size

    def __bytes__(self) -> bytes:
        return b"".join(self._buffers)

    def __iter__(self) -> Iterator[Bytes]:
        return iter(self._buffers)

    def append(self, data: Bytes | Cord) -> None:
        """Add bytes, or the pieces of another cord, at the end.

        Raises:
            TypeError: it is neither.
        """
        if not isinstance(data, Cord | bytes | bytearray | memoryview):
            raise TypeError(f"data is of {type(data).__name__}: give bytes or a Cord")
        self._buffers += list(data._buffers) if isinstance(data, Cord) else [data]
        self._byte_size += len(data)

    def write_to_file(self, outfile: BinaryIO) -> None:
        """Write the pieces in order."""
        for piece in self._buffers:
            outfile.write(piece)


def aligned_size(input_size: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `input_size`."""
    return -(-input_size // alignment) * alignment


def padding_required(offset: int, alignment: int) -> int:
    """The bytes from an offset to the next aligned one."""
    return -offset % alignment


def pad_to(data: bytes, length: int) -> bytes:
    """The bytes followed by zeros; unchanged if they are as long."""
    return data.ljust(length, b"\0")
