"""What program files and data files share.

Made from schema/common.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ScalarType(IntEnum):
    """Element types. The numbers are torch's."""

    BYTE = 0
    CHAR = 1
    SHORT = 2
    INT = 3
    LONG = 4
    HALF = 5
    FLOAT = 6
    DOUBLE = 7
    COMPLEX32 = 8
    COMPLEX64 = 9
    COMPLEX128 = 10
    BOOL = 11
    QINT8 = 12
    QUINT8 = 13
    QINT32 = 14
    BFLOAT16 = 15
    QUINT4x2 = 16
    QUINT2x4 = 17
    BITS16 = 22
    FLOAT8E5M2 = 23
    FLOAT8E4M3FN = 24
    FLOAT8E5M2FNUZ = 25
    FLOAT8E4M3FNUZ = 26
    UINT16 = 27
    UINT32 = 28
    UINT64 = 29


@dataclass(slots=True)
class DataSegment:
    """A range of the segment area that follows the flatbuffer in its file."""

    #: Bytes from the start of the segment area.
    offset: int = 0
    #: Bytes, without the padding that follows.
    size: int = 0
