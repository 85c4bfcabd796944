"""The archive of an ETRecord: its entries, read with limits, and its maps, checked."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from rushlight.errors import Code, LoadError
from rushlight.schema.etrecord import MARKER

Source = str | os.PathLike[str] | IO[bytes]
# Records are not compressed. Those that somebody compressed may grow by so much; a bomb grows more.
_MOST_GROWTH = 100
_ALWAYS_READ = 1 << 20
# What zipfile raises for damaged entries; RuntimeError for those with a password.
_READ_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, MemoryError),
    *(OverflowError, OSError),
)


class RecordArchive:
    """An open record.

    Args:
        source: its path, or an open binary file.

    Raises:
        LoadError: it cannot be read, or is no ETRecord.
    """

    def __init__(self, source: Source) -> None:
        self.where = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
        try:
            self._zip = zipfile.ZipFile(source)
        except OSError as error:
            raise LoadError(
                f"the ETRecord cannot be read: {error.strerror}",
                code=Code.ACCESS_FAILED,
                where=self.where,
            ) from error
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise self.damaged(f"it is no zip archive ({error})") from None
        entries = self._zip.infolist()
        self.names = frozenset(entry.filename for entry in entries)
        if MARKER not in self.names:
            raise self.damaged(f"it has no entry {MARKER}, so it is no ETRecord")
        packed = sum(entry.compress_size for entry in entries)
        whole = sum(entry.file_size for entry in entries)
        if whole > _MOST_GROWTH * packed + _ALWAYS_READ:
            raise self.damaged(f"{packed} bytes in it are to become {whole}, which no record does")

    def __enter__(self) -> RecordArchive:
        return self

    def __exit__(self, *exception: object) -> None:
        self._zip.close()

    def read(self, entry: str) -> bytes:
        """The content of an entry.

        Raises:
            LoadError: it is not there, or is damaged.
        """
        if entry not in self.names:
            raise self.damaged(f"it has no entry {entry!r}: generate it anew")
        try:
            return self._zip.read(entry)
        except _READ_ERRORS as error:
            raise self.damaged(f"its entry {entry!r} cannot be read ({error})") from None

    def json(self, entry: str) -> Any:
        """The document of an entry.

        Raises:
            LoadError: as `read`, or it is no JSON.
        """
        content = self.read(entry)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"its entry {entry!r} is no JSON ({error})") from None

    def damaged(self, what: str) -> LoadError:
        """The error that the record is damaged."""
        return LoadError(f"the ETRecord: {what}", code=Code.INVALID_EXTERNAL_DATA, where=self.where)


def map_in(archive: RecordArchive, entry: str) -> dict[str, dict[str, Any]]:
    """One of the maps {method: {instruction: ...}} of a record; an empty one if it has none.

    Raises:
        LoadError: it is damaged, or arranged in another way.
    """
    fits = _FITS[entry]
    document = archive.json(entry) if entry in archive.names else None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise archive.damaged(f"its entry {entry!r} is no object of JSON")
    for method, instructions in document.items():
        for at, value in instructions.items() if isinstance(instructions, dict) else ((0, None),):
            if not isinstance(instructions, dict) or not fits(value):
                raise archive.damaged(
                    f"its entry {entry!r} has something else than it should for instruction {at} "
                    f"of {method!r}"
                )
    return document


def _are_handles(value: Any) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return all(isinstance(one, int) for one in numbers)


def _is_delegate(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name", ""), str):
        return False
    inside = value.get("delegate_map")
    return inside is None or (isinstance(inside, dict) and all(map(_are_handles, inside.values())))


_FITS: dict[str, Callable[[Any], bool]] = {
    "debug_handle_map": _are_handles,
    "delegate_map": _is_delegate,
    "instruction_id_to_num_outs_map": lambda value: isinstance(value, int),
}
