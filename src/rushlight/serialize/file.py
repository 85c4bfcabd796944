"""The contents of a `.pte` file: a program and its data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rushlight.errors import Code, ExportError
from rushlight.schema import program as fb
from rushlight.serialize.segments import Data


@dataclass
class PTEFile:
    """A program and its data.

    Attributes:
        program: the methods. Its `segments`, `constant_segment`, `constant_buffer`,
            `backend_delegate_data`, `mutable_data_segments` and `named_data` are not used.
            A delegate's `processed.index` is an index into `delegate_blobs`, whatever its
            `processed.location`, which says where the file holds the payload: INLINE in the
            flatbuffer, SEGMENT outside of it. An empty payload is always inline.
        constants: indexed by `Tensor.data_buffer_idx`; element 0 stands for "none" and is empty.
        mutable_data: the initial contents of planned tensors, indexed in the same way.
        named_data: bytes by key.
        delegate_blobs: payloads of delegates.
    """

    program: fb.Program
    constants: list[Data] = field(default_factory=lambda: [b""])
    mutable_data: list[Data] = field(default_factory=lambda: [b""])
    named_data: dict[str, Data] = field(default_factory=dict)
    delegate_blobs: list[Data] = field(default_factory=list)


def check_program_path(path: str | os.PathLike[str]) -> None:
    """Check that a program may have this file name.

    Raises:
        ExportError: if it does not end in .pte.
    """
    if not os.fspath(path).endswith(".pte"):
        problem = f"{os.fspath(path)!r}: a program's file name must end in .pte"
        raise ExportError(problem, code=Code.INVALID_ARGUMENT)
