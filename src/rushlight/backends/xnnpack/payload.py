"""The bytes of a payload: a header and the graph. We store constants as named data, outside it.

The layout: zeros (4), "XH00", length of the header (u16), offset and size of the graph (u32 each),
offset of the constants (u32) and their size (u64), zeros (2), the graph, zeros up to a multiple of
16.
"""

from __future__ import annotations

import struct

from rushlight.schema import xnnpack as fb

_HEAD = struct.Struct("<4x4sHIIIQ2x")
_MAGIC = b"XH00"
_LENGTH = 30  # of the header, without the zeros at its end
_ALIGNMENT = 16


def write_payload(graph: fb.Graph) -> bytes:
    """The payload of a graph whose constants are all named data."""
    data = fb.pack(graph)
    end = -(-(_HEAD.size + len(data)) // _ALIGNMENT) * _ALIGNMENT
    head = _HEAD.pack(_MAGIC, _LENGTH, _HEAD.size, len(data), end, 0)
    return (head + data).ljust(end, b"\0")


def read_payload(payload: bytes) -> fb.Graph:
    """The graph of a payload, with a header or without one.

    Raises:
        LoadError: if it is damaged.
    """
    data = memoryview(payload)
    if bytes(data[4:8]) == _MAGIC and len(data) >= _HEAD.size:
        _, _, offset, size, _, _ = _HEAD.unpack_from(data)
        data = data[offset : offset + size]
    return fb.unpack(data)
