"""Sources of a program or a data file: a path, bytes, or an open file."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any, BinaryIO

from rushlight.errors import Code, LoadError
from rushlight.files import open_file

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Source = str | os.PathLike[str] | os.PathLike[bytes] | Buffer | BinaryIO
else:
    Source = Any


def describe_source(source: object) -> str:
    """A path, or "program in memory", for messages."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    return "program in memory"


def read_source(source: object, what: str) -> tuple[bytes | None, bytes | None]:
    """The path of a source, or its bytes: (path, None) or (None, bytes).

    Args:
        source: a path; `bytes`, which are used as they are; another object with a buffer, which is
            copied, since verified bytes must not change afterwards; an open binary file, which is
            read to its end.
        what: "a program", for messages.

    Raises:
        LoadError: if it is none of these, or cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return _path(source), None
    if isinstance(source, memoryview) and type(source.obj) is bytes:
        source = source.obj if source.nbytes == len(source.obj) else bytes(source)
    if isinstance(source, bytes):
        return None, source
    try:
        return None, memoryview(source).tobytes()  # type: ignore[arg-type]
    except TypeError:
        pass  # it has no buffer
    except (ValueError, BufferError) as error:  # a closed mmap; an array without plain bytes
        raise _unreadable(source, error) from error
    if callable(getattr(source, "read", None)):
        return None, _read(source)
    advice = ": pass its buffer" if hasattr(source, "buffer") else ""
    raise LoadError(
        f"{what} is given as a path, as bytes or as an open binary file, not as "
        f"{type(source).__name__}{advice}",
        code=Code.INVALID_ARGUMENT,
    )


def read_whole(source: object) -> bytes | memoryview:
    """The bytes of a source: of a path, a map of the file.

    Raises:
        LoadError: as `read_source` and `map_file`.
    """
    path, content = read_source(source, "a program")
    return map_file(os.fsdecode(path)) if path is not None else content or b""


def map_file(path: str | os.PathLike[str]) -> bytes | memoryview:
    """The bytes of a file, mapped, for what reads only a small part of a large file.

    Raises:
        LoadError: it cannot be read.
    """
    try:
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LoadError(
            f"cannot read {os.fspath(path)!r}: {reason}; check the path", code=Code.ACCESS_FAILED
        ) from error


def _path(source: str | os.PathLike[Any]) -> bytes:
    path = os.fsencode(source)
    if b"\0" in path:
        raise LoadError(
            "a path has no NUL character: check it, or pass the program's bytes as bytes",
            code=Code.INVALID_ARGUMENT,
            where=repr(os.fsdecode(path)),
        )
    return path


def _read(file: Any) -> bytes:
    try:
        data = file.read()
    except (OSError, ValueError) as error:  # ValueError: it is closed
        raise _unreadable(file, error) from error
    if isinstance(data, str):
        raise LoadError(
            "the file is open as text: open it with mode 'rb'", code=Code.INVALID_ARGUMENT
        )
    try:
        data = data if type(data) is bytes else bytes(memoryview(data))
    except TypeError:
        raise LoadError(
            f"read() of the {type(file).__name__} gives {type(data).__name__}, not bytes: open the "
            f"file with mode 'rb'",
            code=Code.INVALID_ARGUMENT,
        ) from None
    if not data:
        raise LoadError(
            "the open file has nothing left to read: seek(0) first, if it was written or read "
            "before",
            code=Code.INVALID_ARGUMENT,
        )
    return data


def _unreadable(source: object, error: Exception) -> LoadError:
    return LoadError(
        f"the {type(source).__name__} cannot be read: {error}", code=Code.ACCESS_FAILED
    )
