"""Writes and reads the `.pte` program file.

:class:`PTEFile` has none of the file's own tables (segments, offsets, places of named data): they
are made by the writer and resolved by the reader. Data are kept as views and written once, so that
a large model is not copied.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from rushlight.errors import Code, ExportError, LoadError
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.sizes import tensor_bytes
from rushlight.serialize.check import check_program
from rushlight.serialize.file import PTEFile
from rushlight.serialize.segments import (
    HEAD_BYTES,
    HEADER_ALIGNMENT,
    Data,
    Key,
    PartFinder,
    SegmentArea,
    SegmentReader,
    aligned,
    as_bytes,
    pack_parts,
    with_header,
)

# magic, length, program size, segment base, segment bytes; the last only if length says so
HEADER = struct.Struct("<4sIQQQ")
MAGIC = b"eh00"
MIN_HEADER_BYTES = 24
_MIN_FILE_BYTES = 64

# ---- Writing ----


def write_pte(
    pte: PTEFile,
    *,
    constant_alignment: int = 16,
    segment_alignment: int = 128,
    delegate_alignment: int = 1,
    named_data_alignment: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of the program file.

    Args:
        pte: the program and its data; not changed.
        constant_alignment: the position of each constant is a multiple of this.
        segment_alignment: likewise for every segment, from the start of the file.
        delegate_alignment: likewise for the payloads of delegates, inside the flatbuffer and out.
        named_data_alignment: likewise for single keys of the named data, any number.

    All alignments but the last are powers of two.

    Raises:
        ExportError: the program breaks a rule of the format; names method and value or instruction.
    """
    return b"".join(
        _image(
            pte,
            constant_alignment,
            segment_alignment,
            delegate_alignment,
            named_data_alignment or {},
        )
    )


class Sink(Protocol):
    """What a program is written to, such as an open file."""

    def write(self, data: Buffer, /) -> int:
        """Write bytes; returns their number."""


def write_pte_to(
    file: Sink,
    pte: PTEFile,
    *,
    constant_alignment: int = 16,
    segment_alignment: int = 128,
    delegate_alignment: int = 1,
    named_data_alignment: Mapping[str, int] | None = None,
) -> int:
    """Like :func:`write_pte`, into a file, without a copy of the data; returns the bytes."""
    image = _image(
        pte, constant_alignment, segment_alignment, delegate_alignment, named_data_alignment or {}
    )
    return sum(file.write(chunk) for chunk in image)


def _image(
    pte: PTEFile,
    constant_alignment: int,
    segment_alignment: int,
    delegate_alignment: int,
    named_data_alignment: Mapping[str, int],
) -> Iterator[Buffer]:
    for name, alignment in (
        ("constant_alignment", constant_alignment),
        ("segment_alignment", segment_alignment),
        ("delegate_alignment", delegate_alignment),
    ):
        if alignment < 1 or alignment & (alignment - 1):
            raise ExportError(
                f"{name} is {alignment}, it must be a power of two", code=Code.INVALID_ARGUMENT
            )
    check_program(pte)
    area = SegmentArea(segment_alignment)
    program = replace(pte.program, constant_buffer=[], mutable_data_segments=None, named_data=None)
    program.constant_segment = _add_parts(area, pte.constants, constant_alignment)
    if len(pte.mutable_data) > 1:
        program.mutable_data_segments = [_add_parts(area, pte.mutable_data, 1)]
    program.execution_plan, program.backend_delegate_data = _place_delegates(
        pte, area, delegate_alignment
    )
    if pte.named_data:
        program.named_data = _place_named_data(pte, area, program, named_data_alignment)
    yield from image_of(program, area, delegate_alignment)


def image_of(program: fb.Program, area: SegmentArea, delegate_alignment: int) -> Iterator[Buffer]:
    """The bytes of a file, in pieces.

    Args:
        program: all tables but that of segments, which is written into it.
        area: the segments.
        delegate_alignment: of payloads inside the flatbuffer.
    """
    program.segments = area.table()
    inner_alignment = max(HEADER_ALIGNMENT, delegate_alignment)
    flatbuffer = fb.pack(program, {fb.BackendDelegateInlineData: inner_alignment})
    if area.size == 0:
        yield flatbuffer.ljust(_MIN_FILE_BYTES, b"\0")
        return
    header_bytes = aligned(HEADER.size, inner_alignment)
    program_bytes = len(flatbuffer) + header_bytes
    base = aligned(program_bytes, area.alignment)
    header = HEADER.pack(MAGIC, HEADER.size, program_bytes, base, area.size)
    yield with_header(flatbuffer, header.ljust(header_bytes, b"\0")).ljust(base, b"\0")
    yield from area.chunks()


def _add_parts(area: SegmentArea, parts: list[Data], alignment: int) -> fb.SubsegmentOffsets:
    chunks, offsets = pack_parts(parts or [b""], alignment)
    return fb.SubsegmentOffsets(area.add(chunks, alignment), offsets)


def _place_named_data(
    pte: PTEFile, area: SegmentArea, program: fb.Program, alignments: Mapping[str, int]
) -> list[fb.NamedData]:
    """Store named data: equal values once, and a value that equals a constant as that constant."""
    constants = program.constant_segment
    finder = PartFinder(pte.constants, constants.offsets)
    known: dict[Key, list[int]] = {}
    entries = []
    for key, data in pte.named_data.items():
        alignment = alignments.get(key, 1)
        at = finder.find(data, alignment)
        if at is None:
            index = area.add_once(data, known, alignment)
        else:
            index = area.add_inside(constants.segment_index, at, len(as_bytes(data)))
        entries.append(fb.NamedData(key, index))
    return entries


def _place_delegates(
    pte: PTEFile, area: SegmentArea, alignment: int
) -> tuple[list[fb.ExecutionPlan], list[fb.BackendDelegateInlineData]]:
    """Store the payloads inline or in segments, as their delegates say, equal ones once.

    Returns:
        The plans, with references into the file, and the payloads inside the flatbuffer.
    """
    known: dict[Key, list[int]] = {}
    inline: list[fb.BackendDelegateInlineData] = []
    inline_index: dict[bytes, int] = {}

    def place(delegate: fb.BackendDelegate) -> fb.BackendDelegate:
        blob = as_bytes(pte.delegate_blobs[delegate.processed.index])
        location = delegate.processed.location
        if location is fb.DataLocation.SEGMENT and len(blob):
            index = area.add_once(blob, known, alignment)
        else:
            location, content = fb.DataLocation.INLINE, bytes(blob)
            index = inline_index.setdefault(content, len(inline))
            if index == len(inline):
                inline.append(fb.BackendDelegateInlineData(content))
        return replace(delegate, processed=fb.BackendDelegateDataReference(location, index))

    plans = [
        replace(plan, delegates=[place(delegate) for delegate in plan.delegates])
        for plan in pte.program.execution_plan
    ]
    return plans, inline


# ---- Reading ----


def is_pte(data: Buffer) -> bool:
    """Whether `data` begins like a program file of a version that can be read."""
    return bytes(memoryview(data).cast("B")[4:8]) == fb.PROGRAM.identifier


def read_pte(data: Buffer) -> PTEFile:
    """The program in `data`, its constants and other data as views of `data`.

    The size of a constant is that of the largest tensor that uses it; an unused constant reaches up
    to the next one. Old files that hold their constants in the flatbuffer are read too.

    Raises:
        LoadError: `data` is not a program file, or is damaged.
    """
    view = memoryview(data).cast("B")
    flatbuffer, area = split_pte(view)
    program: fb.Program = fb.unpack(flatbuffer)
    segments = SegmentReader(area, program.segments, Code.INVALID_PROGRAM)
    constants, mutable_data = _read_parts(program, segments)
    named_data: dict[str, Data] = {}
    for entry in program.named_data or []:
        if entry.key in named_data:
            raise _error("it is there twice", f"named data {entry.key!r}")
        named_data[entry.key] = segments.get(entry.segment_index, f"named data {entry.key!r}")
    blobs = _read_delegates(program, segments)

    program.segments, program.constant_segment = [], fb.SubsegmentOffsets()
    program.constant_buffer, program.backend_delegate_data = [], []
    program.mutable_data_segments = program.named_data = None
    return PTEFile(program, constants, mutable_data, named_data, blobs)


def split_pte(view: memoryview) -> tuple[memoryview, memoryview]:
    """The flatbuffer and the segment area of a file.

    Raises:
        LoadError: it is not a program file, or is cut short.
    """
    if len(view) < _MIN_FILE_BYTES:
        raise _error(f"it has {len(view)} bytes, a .pte file has at least {_MIN_FILE_BYTES}")
    if not is_pte(view):
        identifier = bytes(view[4:8])
        raise _error(f"not a .pte file: bytes 4 to 7 are {identifier!r} instead of b'ET12'")
    magic, length, program_bytes, base, data_bytes = HEADER.unpack_from(view, HEAD_BYTES)
    if magic != MAGIC:
        return view, view[:0]
    if length < MIN_HEADER_BYTES:
        raise _error(f"its header claims {length} bytes, it needs {MIN_HEADER_BYTES}")
    if length < HEADER.size or data_bytes == 0:
        data_bytes = max(len(view) - base, 0)
    for what, end in (("program", program_bytes), ("data", base + data_bytes)):
        if end > len(view):
            raise _error(f"it ends at byte {len(view)}, its {what} should reach {end}")
    return view[:program_bytes], view[base : base + data_bytes]


def _read_parts(program: fb.Program, segments: SegmentReader) -> tuple[list[Data], list[Data]]:
    """The constants and the initial contents of mutable tensors."""
    constant_bytes, mutable_bytes = _sizes_in_use(program)
    if not program.constant_segment.offsets and program.constant_buffer:
        constants: list[Data] = [buffer.storage for buffer in program.constant_buffer]
    else:
        constants = _parts(program.constant_segment, segments, constant_bytes, "constant")
    mutable: list[Data] = [b""]
    places = program.mutable_data_segments or []
    if len(places) > 1:
        raise _error(f"it has {len(places)} mutable data segments, the format knows one")
    if places:
        mutable = _parts(places[0], segments, mutable_bytes, "mutable data")
    return constants, mutable


def _parts(
    place: fb.SubsegmentOffsets, segments: SegmentReader, sizes: dict[int, int], what: str
) -> list[Data]:
    following = _next_offsets(place.offsets)
    parts: list[Data] = [b""]
    for i in range(1, len(place.offsets)):
        size = sizes.get(i, following[i])
        parts.append(segments.part(place.segment_index, place.offsets[i], size, f"{what} {i}"))
    return parts


def _next_offsets(offsets: list[int]) -> list[int | None]:
    """For each part the number of bytes up to the next greater offset; None for the last part."""
    order = sorted(set(offsets))
    following = dict(itertools.pairwise(order))
    return [following[o] - o if o in following else None for o in offsets]


def _sizes_in_use(program: fb.Program) -> tuple[dict[int, int], dict[int, int]]:
    """The sizes of the constants, and of the mutable data, that tensors use, by index."""
    constant: dict[int, int] = {}
    mutable: dict[int, int] = {}
    for plan in program.execution_plan:
        for i, value in enumerate(plan.values):
            tensor = value.val
            if not isinstance(tensor, fb.Tensor) or tensor.data_buffer_idx == 0:
                continue
            extra = tensor.extra_tensor_info
            if extra is not None and extra.location is fb.TensorDataLocation.EXTERNAL:
                continue
            try:
                size = tensor_bytes(tensor.scalar_type, tensor.sizes)
            except ValueError as error:
                raise _error(str(error), f"{plan.name}: value {i}") from error
            sizes = constant if tensor.allocation_info is None else mutable
            index = tensor.data_buffer_idx
            sizes[index] = max(size, sizes.get(index, 0))
    return constant, mutable


def _read_delegates(program: fb.Program, segments: SegmentReader) -> list[Data]:
    """The payloads in the order of their first use; the delegates' references are set to it."""
    blobs: list[Data] = []
    known: dict[tuple[fb.DataLocation, int], int] = {}
    for plan in program.execution_plan:
        for i, delegate in enumerate(plan.delegates):
            place = (delegate.processed.location, delegate.processed.index)
            if place not in known:
                where = f"{plan.name}: delegate {i} ({delegate.id})"
                known[place] = len(blobs)
                blobs.append(_payload(program, segments, place, where))
            delegate.processed.index = known[place]
    return blobs


def _payload(
    program: fb.Program,
    segments: SegmentReader,
    place: tuple[fb.DataLocation, int],
    where: str,
) -> Data:
    location, index = place
    if location is fb.DataLocation.SEGMENT:
        return segments.get(index, where)
    inline = program.backend_delegate_data
    if index >= len(inline):
        raise _error(f"its payload is number {index} of {len(inline)}", where)
    return inline[index].data


def _error(what: str, where: str = "") -> LoadError:
    return LoadError(
        f"{what}; check that the file arrived whole, or export it again",
        code=Code.INVALID_PROGRAM,
        where=where,
    )
