"""Weights that lie in mapped files, so that a model does not take memory while it is exported.

Those of the model's own files are read where they lie. What is made of them is written to a
temporary file, some rows at a time. The pages of both are given back as soon as they were read, and
so is memory that was freed.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
import torch

from rushlight.errors import Code, ExportError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_LEAST = 1 << 16  # bytes that are worth a place in a file
IN_MEMORY = 1 << 26
"""Bytes of weights that an export of any model keeps in memory."""
_CHUNK = 1 << 28  # bytes that are mapped at once; what is not written takes no room on a disk
_AT_ONCE = 1 << 22  # bytes that are made or read at a time
_ALIGNMENT = 64


class WeightFiles:
    """The files of an export's weights.

    Args:
        in_memory: bytes of weights that stay in memory, before there is a file.

    Attributes:
        sources: give back the memory of pages of the model's own files.
    """

    def __init__(self, in_memory: int = 0) -> None:
        self.sources: list[Callable[[], None]] = []
        self._in_memory = in_memory
        self._maps: list[mmap.mmap] = []
        self._file: Any = None  # of the last map
        self._at = self._end = self._read = 0

    @property
    def is_used(self) -> bool:
        """Whether there are weights in the temporary file, or no more are to lie in memory."""
        return bool(self._maps) or not self._in_memory

    def place(self, size: int) -> Place | None:
        """Room for so many bytes; None if they are to lie in memory.

        Raises:
            ExportError: there is none.
        """
        if size < _LEAST:
            return None
        if not self._maps and size <= self._in_memory:
            self._in_memory -= size
            return None
        try:
            if self._at + size > self._end:
                self._grow(max(size, _CHUNK))
        except OSError as error:
            raise _no_room(size, error) from error
        at = self._at
        self._at = at + size + -size % _ALIGNMENT
        return Place(self._file, at, np.frombuffer(self._maps[-1], np.uint8, size, at))

    def add(self, data: Bytes) -> Bytes | None:
        """The same bytes in the file; None if they are to lie in memory.

        Args:
            data: all in one piece.

        Raises:
            ExportError: the file cannot be written.
        """
        place = self.place(data.nbytes)
        if place is None:
            return None
        for part in in_parts(data):
            place.write(np.frombuffer(part, np.uint8))
        return place.data

    def _grow(self, size: int) -> None:
        # Python may give a file a name; it is gone as soon as the file is closed.
        file = tempfile.TemporaryFile(buffering=0, prefix="rushlight-")  # noqa: SIM115
        file.truncate(size)
        self._maps.append(mmap.mmap(file.fileno(), size))
        self._file, self._at, self._end = file, 0, size

    def holds(self, address: int) -> bool:
        """Whether what begins at an address lies in the temporary file."""
        return any(first <= address < end for first, end in map(_addresses, self._maps))

    def were_read(self, size: int) -> None:
        """So many bytes were read."""
        self._read += size
        if self._read >= _AT_ONCE:
            self.release()

    def release(self) -> None:
        """Give back the memory of pages that were read, which are read again when needed, and the
        memory that was freed."""
        self._read = 0
        for release in self.sources:
            release()
        for one in self._maps:
            give_back(one)
        _give_back_freed()


class Place:
    """Room in a temporary file.

    Args:
        file: open for writing.
        at: where the room begins.
        data: the same bytes, mapped.
    """

    def __init__(self, file: Any, at: int, data: Bytes) -> None:
        self.data = data
        self._file, self._at = file, at

    def tensor(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """The bytes as a tensor."""
        return torch.from_numpy(self.data).view(dtype).reshape(tuple(shape))

    def write(self, data: Bytes) -> None:
        """Write the next bytes.

        Raises:
            ExportError: the file cannot be written.
        """
        # Written to the file and not to memory: where a disk is full, this is an error, and a write
        # to mapped memory would end the process.
        left = data.data
        try:
            self._file.seek(self._at)
            while left:
                count = self._file.write(left)
                if not count:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._at, left = self._at + count, left[count:]
        except OSError as error:
            raise _no_room(data.nbytes, error) from error


def _no_room(size: int, error: OSError) -> ExportError:
    return ExportError(
        f"cannot write {size} bytes of weights to a temporary file in "
        f"{tempfile.gettempdir()}: {error.strerror}; make room there, or set TMPDIR to another "
        f"folder",
        code=Code.ACCESS_FAILED,
    )


def _addresses(one: mmap.mmap) -> tuple[int, int]:
    """Where the bytes of a mapped file begin and end."""
    first = np.frombuffer(one, np.uint8).ctypes.data
    return first, first + len(one)


def give_back(one: mmap.mmap) -> None:
    """Give back the memory of the pages of a mapped file that were read.

    Args:
        one: a mapped file. Nothing happens on systems that have no such call.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        one.madvise(mmap.MADV_DONTNEED)


def _give_back_freed() -> None:
    """Give back the memory that was freed between blocks that are in use, which glibc keeps: large
    blocks that come and go beside small ones that stay would take several times their size."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """A function of glibc; None elsewhere."""
    with suppress(OSError, TypeError, AttributeError):
        return ctypes.CDLL(None).malloc_trim
    return None


_ACTIVE: ContextVar[WeightFiles | None] = ContextVar("weight_files", default=None)


@contextmanager
def weights_in_files(files: WeightFiles | None = None) -> Iterator[None]:
    """Within it, weights are moved to files, and `were_read` gives back the memory of files.

    Args:
        files: those to use; default: new ones.
    """
    token = _ACTIVE.set(files or WeightFiles())
    try:
        yield
    finally:
        _ACTIVE.reset(token)


@contextmanager
def large_weights_in_files() -> Iterator[None]:
    """The same for an export of any model: there is a file only if its weights are large, and an
    export that it is part of goes on with its own files."""
    if _ACTIVE.get() is not None:
        yield
        return
    with weights_in_files(WeightFiles(IN_MEMORY)):
        yield


def files_of_weights() -> WeightFiles | None:
    """The files that weights are moved to; None if they are not."""
    return _ACTIVE.get()


def also_release(release: Callable[[], None]) -> None:
    """Let `were_read` give back the memory of a model's own files, too.

    Args:
        release: gives back that memory; what was there is read again when needed.
    """
    files = _ACTIVE.get()
    if files is not None:
        files.sources.append(release)


class Filled:
    """A tensor whose elements are given in parts, one after the other: in a file, if weights lie in
    files and these are many.

    Args:
        shape: of the tensor.
        dtype: of the tensor.

    Attributes:
        tensor: the tensor, dense; all parts are to be given before it is read.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        size = math.prod(shape) * dtype.itemsize
        files = _ACTIVE.get()
        self._place = None if files is None else files.place(size)
        self._at = 0
        if self._place is None:
            self.tensor = torch.empty(tuple(shape), dtype=dtype)
        else:
            self.tensor = self._place.tensor(shape, dtype)

    def add(self, part: torch.Tensor) -> None:
        """Give the next elements, in the order in which they lie.

        Raises:
            ExportError: they cannot be written.
        """
        flat = part.detach().to(self.tensor.dtype).contiguous().reshape(-1)
        if self._place is None:
            self.tensor.view(-1)[self._at : self._at + len(flat)] = flat
            self._at += len(flat)
        else:
            self._place.write(flat.view(torch.uint8).numpy())
            were_read(flat.nbytes)


def rows_at_once(row: int) -> int:
    """How many rows are made or read at a time.

    Args:
        row: the bytes of one.
    """
    return max(_AT_ONCE // max(row, 1), 1)


def own_bytes(data: Bytes) -> bytes | Bytes:
    """The same bytes, which nobody changes: in a file, if weights lie in files and these are many,
    or else a copy.

    Args:
        data: all in one piece.
    """
    files = _ACTIVE.get()
    if files is not None and files.holds(data.ctypes.data):
        return data
    made = None if files is None else files.add(data)
    return data.tobytes() if made is None else made


def to_file(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The same elements: in a file, if weights lie in files and these are many.

    Args:
        tensor: the weights.
        dtype: what they are converted to; default: their own.
    """
    dtype = dtype or tensor.dtype
    files = _ACTIVE.get()
    if files is not None and dtype == tensor.dtype and files.holds(tensor.data_ptr()):
        return tensor
    place = None if files is None else files.place(tensor.numel() * dtype.itemsize)
    if place is None:
        return tensor.to(dtype)
    rows = tensor.view(-1) if tensor.is_contiguous() else tensor
    for part in rows.detach().split(rows_at_once(rows[0].numel() * dtype.itemsize)):
        place.write(part.to(dtype).contiguous().view(-1).view(torch.uint8).numpy())
        were_read(part.nbytes)
    return place.tensor(tensor.shape, dtype)


def in_parts(data: Any) -> Iterator[memoryview]:
    """The bytes of some data, a part at a time; the memory of each is given back after it is read.

    Args:
        data: all in one piece.
    """
    view = memoryview(data)
    view = view.cast("B") if view.nbytes else memoryview(b"")
    for first in range(0, len(view), _AT_ONCE):
        part = view[first : first + _AT_ONCE]
        yield part
        were_read(len(part))


def digest(data: Any) -> bytes:
    """The SHA-256 of some data.

    Args:
        data: all in one piece.
    """
    made = hashlib.sha256()
    for part in in_parts(data):
        made.update(part)
    return made.digest()


def were_read(size: int = _AT_ONCE) -> None:
    """Some weights were read.

    Args:
        size: their bytes; memory is given back when there are many.
    """
    files = _ACTIVE.get()
    if files is not None:
        files.were_read(size)
