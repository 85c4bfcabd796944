"""ETDump files from and to their tables, as ExecuTorch's functions take them."""

from __future__ import annotations

from rushlight.inspect.trace.etdump import read_etdump
from rushlight.schema import etdump as fb
from rushlight.schema.codec import Buffer


def serialize_to_etdump_flatcc(etdump: fb.ETDump) -> bytes:
    """The bytes of a trace, without its size in front.

    Args:
        etdump: its tables.
    """
    return fb.pack(etdump)


def deserialize_from_etdump_flatcc(flatbuffer: Buffer, size_prefixed: bool = True) -> fb.ETDump:
    """The tables of a trace.

    Args:
        flatbuffer: its bytes.
        size_prefixed: whether its size is in front; both are told apart anyway.

    Raises:
        LoadError: it is damaged.
    """
    return read_etdump(flatbuffer)
