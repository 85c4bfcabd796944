"""The map to Python lines as bytes, in two versions, and with some parts left out to save space.

A map of version 2 begins with `MAGIC`, the version and the number of parts, of `LEFT_OUT`, that
were left out; a map of version 1 is JSON.
"""

from __future__ import annotations

from rushlight.schema.debug import LEFT_OUT, DebugLine, DebugMap, DebugMethod, DebugNode
from rushlight.serialize.debug_details import read_details, write_details
from rushlight.serialize.debug_json import read_json_map
from rushlight.serialize.debug_lines import MethodLines, line_table, read_lines, write_lines

KEY = "rushlight/debug"
MAGIC = b"RLDM"
VERSION = 2
_HEADER = len(MAGIC) + 2
_MAX_TEXT = 160  # characters of a line of a map with a limit


def write_debug(debug: DebugMap, limit: int | None = None) -> bytes:
    """The bytes of a map.

    Args:
        debug: the map; not changed.
        limit: the most bytes. As many parts of `LEFT_OUT` as needed are left out, and lines of more
            than 160 characters are cut. None stores everything up to a reader's limit, which is
            about a million lines of instructions.
    """
    for level in range(len(LEFT_OUT) + 1):
        data = _write(debug, level, None if limit is None else _MAX_TEXT)
        if data is not None and (limit is None or len(data) <= limit):
            return data
    return _header(len(LEFT_OUT))


def _header(level: int) -> bytes:
    return MAGIC + bytes([VERSION, level])


def _write(debug: DebugMap, level: int, most_text: int | None) -> bytes | None:
    """The map without the first `level` of `LEFT_OUT`; None if it exceeds a reader's limits."""
    if level == len(LEFT_OUT):
        return _header(level)

    def brief(line: DebugLine) -> DebugLine:
        if not line.file:
            return DebugLine()
        if level > 0:
            return line._replace(text="")
        if most_text is None or len(line.text) <= most_text:
            return line
        return line._replace(text=line.text[: most_text - 1] + "…")

    table = line_table(debug, brief)
    details: bytes | None = b""
    if level < 4:
        details = write_details(debug, table, brief, modules=level < 2, coverage=level < 3)
    if details is None:
        return None
    lines = write_lines(debug, table, brief, places=level < 5)
    return None if lines is None else _header(level) + lines + details


def read_debug(data: bytes | memoryview | None) -> DebugMap:
    """The map in a file, of either version; empty if there is none. Damaged parts are left out,
    because a map is only for messages and reports."""
    view = memoryview(data or b"").cast("B")
    if bytes(view[: len(MAGIC)]) != MAGIC:
        return read_json_map(bytes(view))
    if len(view) < _HEADER or view[len(MAGIC)] != VERSION:
        return DebugMap()
    level = min(view[_HEADER - 1], len(LEFT_OUT))
    if level == len(LEFT_OUT):
        return DebugMap(level=level)
    try:
        table, size = read_lines(view[_HEADER:])
    except ValueError:
        return DebugMap()
    details = view[_HEADER + size :]
    try:
        if details:
            return DebugMap(read_details(details, table), level)
    except (*(KeyError, TypeError, ValueError, IndexError), *(AttributeError, ArithmeticError)):
        pass
    except (RecursionError, MemoryError):
        pass
    return DebugMap({name: _only_lines(lines) for name, lines in table.methods.items()}, level)


def _only_lines(lines: MethodLines) -> DebugMethod:
    unknown = (DebugNode(),)
    nodes = [(listed or unknown)[0] for listed in lines.instructions]
    return DebugMethod(nodes, delegates=[*lines.delegates])
