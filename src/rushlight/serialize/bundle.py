"""The bundled program (`.bpte`): a program file with test cases for its methods."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO

from rushlight.errors import Code, ExportError, LoadError
from rushlight.schema import bundled_program as fb
from rushlight.schema import codec
from rushlight.schema.codec import Buffer
from rushlight.serialize.segments import aligned

VERSION = 2
"""ExecuTorch's, of the format."""
# A page, so that the segments of a mapped program are aligned as in a file of its own.
_PROGRAM_ALIGNMENT = 4096
_MAX_BYTES = (1 << 31) - 1  # of a flatbuffer
_PROGRAM_SLOT = 2


def is_bundle(data: Buffer) -> bool:
    """Whether `data` begins like a bundled program."""
    return bytes(memoryview(data)[4:8]) == fb.BUNDLED_PROGRAM.identifier


def program_in(data: Buffer) -> Buffer:
    """The program file in a bundled program, as a view; `data` itself if it is none.

    Raises:
        LoadError: the bundled program is damaged.
    """
    return read_bundle(data).program if is_bundle(data) else data


def read_bundle(data: Buffer) -> fb.BundledProgram:
    """The content of a bundled program; the program and tensors are views of `data`.

    Raises:
        LoadError: `data` is no bundled program, or is damaged.
    """
    view = memoryview(data).cast("B")
    if not is_bundle(view):
        raise LoadError(
            f"not a bundled program (.bpte): bytes 4 to 7 are {bytes(view[4:8])!r} instead of "
            f"b'BP08'; rushlight.bundle makes one of a program",
            code=Code.INVALID_PROGRAM,
        )
    bundle: fb.BundledProgram = codec.unpack(fb.BUNDLED_PROGRAM, view, views=True)
    if not bundle.program:
        raise LoadError(
            "the bundled program has no program in it; bundle it again", code=Code.INVALID_PROGRAM
        )
    return bundle


def write_bundle(program: Buffer, suites: Sequence[fb.BundledMethodTestSuite]) -> bytes:
    """The bytes of a bundled program.

    Raises:
        ExportError: it would be larger than its format allows.
    """
    head = _head(program, suites)
    return b"".join((head, memoryview(program).cast("B")))


def write_bundle_to(
    file: BinaryIO, program: Buffer, suites: Sequence[fb.BundledMethodTestSuite]
) -> int:
    """Like `write_bundle`, into a file and without a copy of the program; returns the bytes."""
    return file.write(_head(program, suites)) + file.write(memoryview(program).cast("B"))


def _head(program: Buffer, suites: Sequence[fb.BundledMethodTestSuite]) -> bytes:
    """What stands before the program, which is the flatbuffer's last vector: its place is then
    aligned from the start of the file, and its bytes are written without a copy."""
    ordered = sorted(suites, key=lambda suite: suite.method_name)
    head = fb.pack(fb.BundledProgram(VERSION, ordered))
    size = memoryview(program).nbytes
    base = aligned(len(head) + 4, _PROGRAM_ALIGNMENT)
    if base + size > _MAX_BYTES:
        raise ExportError(
            f"the program has {size} bytes and its test cases {len(head)}, but a bundled program "
            f"has at most {_MAX_BYTES}: keep weights in a data file (.ptd), or bundle fewer cases",
            code=Code.OUT_OF_RESOURCES,
        )
    made = bytearray(head.ljust(base - 4, b"\0")) + struct.pack("<I", size)
    root = struct.unpack_from("<I", made, 0)[0]
    vtable = root - struct.unpack_from("<i", made, root)[0]
    field = root + struct.unpack_from("<H", made, vtable + 4 + 2 * _PROGRAM_SLOT)[0]
    struct.pack_into("<I", made, field, base - 4 - field)
    return bytes(made)
