"""The data files (.ptd) of a program, and the digests by which a runtime checks them.

A data file holds the digests of its entries under `rushlight/digests/<tag>`, and the program those
of the entries that it was saved with under `rushlight/data/<tag>`: 16 bytes each, sorted. A runtime
compares them before it uses a data file (`cpp/program/data_pair.h`), which takes no time whatever
the size of the weights. Other runtimes ignore both.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

from rushlight.errors import Code, ExportError
from rushlight.serialize.ptd import NamedTensor, write_ptd, write_ptd_to
from rushlight.serialize.segments import Data, as_bytes

_IN_PROGRAM = "rushlight/data/"
_IN_DATA_FILE = "rushlight/digests/"
_BYTES = 16


class DataFiles:
    """The data files of one program.

    Args:
        entries: (tag, key, tensor) for each; the tag is the file's name without `.ptd`.

    Raises:
        ExportError: two entries of a file have the same key.
    """

    def __init__(self, entries: Iterable[tuple[str, str, NamedTensor]]) -> None:
        self._files: dict[str, dict[str, NamedTensor]] = {}
        for tag, key, entry in entries:
            if self._files.setdefault(tag, {}).setdefault(key, entry) is not entry:
                raise ExportError(
                    f"{tag}.ptd: a backend's named data and a weight are both called {key!r}: let "
                    f"the backend use keys of its own",
                    code=Code.INVALID_ARGUMENT,
                )
        self._digests = {tag: _digests(mine) for tag, mine in self._files.items()}
        for tag, digests in self._digests.items():
            self._files[tag][_IN_DATA_FILE + tag] = NamedTensor(digests)

    def named_data(self) -> dict[str, Data]:
        """The digests for the program's named data, by key."""
        return {_IN_PROGRAM + tag: digests for tag, digests in self._digests.items()}

    def images(self) -> dict[str, bytes]:
        """The bytes of each file, by tag."""
        return {tag: write_ptd(entries) for tag, entries in self._files.items()}

    def paths(self, folder: str | os.PathLike[str]) -> list[str]:
        """The paths of the files in a folder."""
        return [os.path.join(folder, f"{tag}.ptd") for tag in self._files]

    def write_to(self, files: Sequence[BinaryIO]) -> None:
        """Write each data file to an open file, in the order of `paths`."""
        for file, entries in zip(files, self._files.values(), strict=True):
            write_ptd_to(file, entries)


def _digests(entries: Mapping[str, NamedTensor]) -> bytes:
    return b"".join(sorted(_digest(key, entry) for key, entry in entries.items()))


def _digest(key: str, entry: NamedTensor) -> bytes:
    """The digest of an entry's key, layout and bytes."""
    layout = entry.layout
    name, shape = key.encode(), ""
    if layout is not None:
        order = list(layout.dim_order)
        shape = f"{int(layout.scalar_type)} {list(layout.sizes)} {order}"
    hasher = hashlib.blake2b(f"{len(name)} {shape}\n".encode() + name, digest_size=_BYTES)
    hasher.update(as_bytes(entry.data))
    return hasher.digest()
