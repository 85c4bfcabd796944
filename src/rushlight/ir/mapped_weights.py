"""Weights that lie in mapped files, so that a model does not take memory while it is exported.

Those of the model's own files are read where they lie. What is made of them is moved to a temporary
file. The pages of both are given back as soon as they were read.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from rushlight.errors import Code, ExportError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_LEAST = 1 << 16  # bytes that are worth a place in a file
_CHUNK = 1 << 28  # bytes that are mapped at once; what is not written takes no room on a disk
_ALIGNMENT = 64


class WeightFiles:
    """The files of an export's weights.

    Attributes:
        sources: give back the memory of pages of the model's own files.
    """

    def __init__(self) -> None:
        self.sources: list[Callable[[], None]] = []
        self._maps: list[mmap.mmap] = []
        self._file: Any = None  # of the last map
        self._at = self._end = 0

    def add(self, data: Bytes) -> Bytes:
        """The same bytes, in the temporary file.

        Args:
            data: all in one piece.

        Raises:
            ExportError: the file cannot be written.
        """
        try:
            return self._written(data)
        except OSError as error:
            raise ExportError(
                f"cannot write {data.nbytes} bytes of weights to a temporary file in "
                f"{tempfile.gettempdir()}: {error.strerror}; make room there, or set TMPDIR to "
                f"another folder",
                code=Code.ACCESS_FAILED,
            ) from error

    def _written(self, data: Bytes) -> Bytes:
        if self._at + data.nbytes > self._end:
            self._grow(max(data.nbytes, _CHUNK))
        at = self._at
        # Written to the file and not to memory: where a disk is full, this is an error, and a write
        # to mapped memory would end the process.
        self._file.seek(at)
        left = data.data
        while left:
            count = self._file.write(left)
            if not count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left = left[count:]
        self._at = at + data.nbytes + -data.nbytes % _ALIGNMENT
        return np.frombuffer(self._maps[-1], np.uint8, data.nbytes, at)

    def _grow(self, size: int) -> None:
        # Python may give a file a name; it is gone as soon as the file is closed.
        file = tempfile.TemporaryFile(buffering=0, prefix="rushlight-")  # noqa: SIM115
        file.truncate(size)
        self._maps.append(mmap.mmap(file.fileno(), size))
        self._file, self._at, self._end = file, 0, size

    def holds(self, data: Bytes) -> bool:
        """Whether bytes lie in the temporary file."""
        at = data.ctypes.data
        return any(first <= at < end for first, end in map(_addresses, self._maps))

    def release(self) -> None:
        """Give back the memory of pages that were read; they are read again when needed."""
        for release in self.sources:
            release()
        for one in self._maps:
            give_back(one)


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


_ACTIVE: ContextVar[WeightFiles | None] = ContextVar("weight_files", default=None)


@contextmanager
def weights_in_files() -> Iterator[None]:
    """Within it, weights are moved to files, and `were_read` gives back the memory of files."""
    token = _ACTIVE.set(WeightFiles())
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def also_release(release: Callable[[], None]) -> None:
    """Let `were_read` give back the memory of a model's own files, too.

    Args:
        release: gives back that memory; what was there is read again when needed.
    """
    files = _ACTIVE.get()
    if files is not None:
        files.sources.append(release)


def own_bytes(data: Bytes) -> bytes | Bytes:
    """The same bytes, which nobody changes: in a file, if weights lie in files and these are many,
    or else a copy.

    Args:
        data: all in one piece.
    """
    files = _ACTIVE.get()
    if files is None or data.nbytes < _LEAST:
        return data.tobytes()
    return data if files.holds(data) else files.add(data)


def to_file(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements: in a file, if weights lie in files and these are many.

    Args:
        tensor: the weights.
    """
    files = _ACTIVE.get()
    if files is None or tensor.numel() * tensor.element_size() < _LEAST:
        return tensor
    flat = tensor.detach().contiguous().reshape(-1)
    made = torch.from_numpy(files.add(flat.view(torch.uint8).numpy()))
    return made.view(tensor.dtype).reshape(tensor.shape)


def were_read() -> None:
    """Some weights were read."""
    files = _ACTIVE.get()
    if files is not None:
        files.release()
