"""Adds the map to Python lines to a file, within a limit of its size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rushlight.schema.debug import DebugMap
from rushlight.serialize.debug import KEY, write_debug
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import Data, as_bytes

LEAST_LIMIT = 16 * 1024


def with_debug(file: PTEFile, debug: DebugMap, level: str) -> PTEFile:
    """The file with a debug map.

    Args:
        file: the file without a map.
        debug: the map.
        level: "lines": at most 2 % of the file, or 16 KiB; "full": all; "none".
    """
    if level == "none":
        return file
    limit = None
    if level == "lines":
        # Named data of delegates may also be constants, which the file holds once.
        stored = (file.named_data.values(), file.constants)
        most = max(_size({id(data): data for data in one}.values()) for one in stored)
        rest = most + _size(file.mutable_data) + _size(file.delegate_blobs)
        limit = max(LEAST_LIMIT, rest // 50)
    return replace(file, named_data={**file.named_data, KEY: write_debug(debug, limit)})


def _size(stored: Iterable[Data]) -> int:
    return sum(len(as_bytes(data)) for data in stored)
