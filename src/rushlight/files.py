"""Writing files: each is written beside its place and renamed over it once it is whole.

A process that has the old file open or mapped keeps its contents, and a write that fails (a full
disk, a limit on file sizes) leaves only the old file. Every writer of the package uses this module.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

AnyPath = str | os.PathLike[str]
_BEYOND_FILES = ("/proc/", "/dev/fd/")  # links to open files of a process
_MAX_LINKS = 40


@contextmanager
def replacing(path: AnyPath) -> Iterator[BinaryIO]:
    """A `with` block that writes one file; see `replacing_all`."""
    with replacing_all([path]) as files:
        yield files[0]


@contextmanager
def replacing_all(paths: Sequence[AnyPath]) -> Iterator[list[BinaryIO]]:
    """A `with` block that writes some files, opened for binary writing, in the order of `paths`.

    At its end all files are flushed to the disk, then renamed to their paths in that order. If the
    block raises, or a file cannot be finished, no path changes. A symbolic link stays, and its
    target is replaced. Permissions are those that opening the path would give. A pipe, a terminal
    or another path that is not a file is written directly.

    Raises:
        OSError: a file cannot be written.
    """
    with ExitStack() as stack:
        written = [stack.enter_context(_Written(path)) for path in paths]
        yield [one.file for one in written]
        for one in written:
            one.finish()
        for one in written:
            one.take_place()


def write_text(path: AnyPath, text: str) -> None:
    """Write a file of UTF-8 text; OSError if it cannot be."""
    with replacing(path) as file:
        file.write(text.encode())


def open_file(path: AnyPath) -> BinaryIO:
    """Open a file to read it; OSError if it is not a file, since opening a pipe would wait."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is a directory, a pipe or a device, not a file")
    return open(path, "rb")


@contextmanager
def new_folder(path: AnyPath) -> Iterator[Path]:
    """A `with` block that fills a new folder, which appears at `path` only if the block succeeds.

    Raises:
        OSError: the folder cannot be made, or the path exists already.
    """
    target = Path(path)
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.parent / _name_beside()
    beside.mkdir()
    try:
        yield beside
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


class _Written:
    """One file of `replacing_all`."""

    def __init__(self, path: AnyPath) -> None:
        self._place: str | None = _place_of(path)
        self._beside: str | None = None
        before = _status(self._place) if self._place is not None else None
        if self._place is None or (before is not None and not stat.S_ISREG(before.st_mode)):
            self.file: BinaryIO = open(path, "wb")  # noqa: SIM115 - closed by __exit__
            return
        if before is not None and not os.access(self._place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        beside = os.path.join(os.path.dirname(self._place), _name_beside())
        self.file = open(beside, "xb")  # noqa: SIM115 - closed by __exit__
        self._beside = beside
        if before is not None:
            _give(self.file.fileno(), before)

    def __enter__(self) -> _Written:
        return self

    def finish(self) -> None:
        """Flush and close the file; raises OSError if the disk is full."""
        self.file.flush()
        if self._beside is not None:
            os.fsync(self.file.fileno())
        self.file.close()

    def take_place(self) -> None:
        """Rename the file to its path."""
        if self._beside is None or self._place is None:
            return
        os.replace(self._beside, self._place)
        self._beside = None
        with suppress(OSError):  # not every system can flush a folder
            folder = os.open(os.path.dirname(self._place), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # data that was not flushed is dropped
            self.file.close()
        if self._beside is not None:
            with suppress(OSError):
                os.unlink(self._beside)


def _name_beside() -> str:
    return f".rushlight-{secrets.token_hex(8)}.tmp"


def _place_of(path: AnyPath) -> str | None:
    """The path of the file itself, with symbolic links resolved; None for a link to an open file of
    a process, which cannot be replaced."""
    place = os.path.abspath(path)
    for _ in range(_MAX_LINKS):
        place = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
        if place.startswith(_BEYOND_FILES):
            return None
        if not os.path.islink(place):
            break
        place = os.path.abspath(os.path.join(os.path.dirname(place), os.readlink(place)))
    return place


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _give(file: int, before: os.stat_result) -> None:
    """Give a new file the owner and permissions of the file that it replaces."""
    if not hasattr(os, "fchown"):
        return  # on this system permissions are the folder's
    with suppress(OSError):  # a user cannot give files away
        os.fchown(file, before.st_uid, before.st_gid)
    with suppress(OSError):  # some file systems have no permissions
        os.fchmod(file, stat.S_IMODE(before.st_mode))
