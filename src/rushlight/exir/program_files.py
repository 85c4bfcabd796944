"""Program files (.pte) by ExecuTorch's functions: the schema's dataclasses to bytes, and back.

Here a program holds its constants and payloads itself, in `constant_buffer` and
`backend_delegate_data`; what is written is not checked. Our own exports are written by
`rushlight.serialize.pte`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from rushlight.errors import Code
from rushlight.exir.config import ExecutorchBackendConfig
from rushlight.exir.cord import Cord
from rushlight.exir.data_files import DataPayload, DataSerializer
from rushlight.exir.emitted import EmitterOutput
from rushlight.partition.named_data import DataEntry, NamedDataStore, NamedDataStoreOutput
from rushlight.schema import program as fb
from rushlight.schema.codec import Buffer
from rushlight.schema.flat_tensor import TensorLayout
from rushlight.schema.json_text import DataclassEncoder
from rushlight.serialize.pte import HEADER, MAGIC, MIN_HEADER_BYTES, image_of, split_pte
from rushlight.serialize.segments import (
    HEAD_BYTES,
    Key,
    SegmentArea,
    SegmentReader,
    key_of,
    pack_parts,
)

_ALIGNMENT = 16  # of constants and of payloads in the flatbuffer


@dataclass
class PTEFile:
    """The content of a program file.

    Attributes:
        program: its tables, with constants and payloads.
        mutable_data: the first contents of planned tensors; None: there are none.
        named_data: bytes by key.
    """

    program: fb.Program
    mutable_data: list[fb.Buffer] | None = None
    named_data: NamedDataStoreOutput | None = None


@dataclass
class ExtendedHeader:
    """What is at byte 8 of a program file that has segments.

    Attributes:
        program_size: bytes of the flatbuffer, this header included.
        segment_base_offset: where the first segment begins.
        segment_data_size: bytes of all segments; 0 if an old file does not tell.
        magic, length: of the header itself.
    """

    EXPECTED_MAGIC: ClassVar[bytes] = MAGIC
    MINIMUM_LENGTH: ClassVar[int] = MIN_HEADER_BYTES
    EXPECTED_LENGTH: ClassVar[int] = HEADER.size
    NUM_HEAD_BYTES: ClassVar[int] = 64

    program_size: int
    segment_base_offset: int
    segment_data_size: int
    magic: bytes = EXPECTED_MAGIC
    length: int = EXPECTED_LENGTH

    @classmethod
    def from_bytes(cls, data: Buffer) -> ExtendedHeader:
        """The header of a file, which may be invalid.

        Args:
            data: from byte 8 of the file on.

        Raises:
            ValueError: there are too few bytes.
        """
        if len(data) < cls.EXPECTED_LENGTH:
            raise ValueError(
                f"{len(data)} bytes are too few for the header of a program file, which has "
                f"{cls.EXPECTED_LENGTH}"
            )
        magic, length, size, base, data_size = HEADER.unpack_from(data)
        return cls(size, base, data_size if length > cls.MINIMUM_LENGTH else 0, magic, length)

    def is_valid(self) -> bool:
        """Whether it is the header of a program file."""
        return self.magic == self.EXPECTED_MAGIC and self.length >= self.MINIMUM_LENGTH

    def to_bytes(self) -> bytes:
        """The header as bytes; always with the magic and length of a valid one."""
        return HEADER.pack(
            self.EXPECTED_MAGIC,
            self.EXPECTED_LENGTH,
            *(self.program_size, self.segment_base_offset, self.segment_data_size),
        )


def extended_header(program_data: Buffer) -> ExtendedHeader | None:
    """The header of a whole file; None if it has no valid one, as files without segments."""
    try:
        header = ExtendedHeader.from_bytes(memoryview(program_data)[HEAD_BYTES:])
    except ValueError:
        return None
    return header if header.is_valid() else None


def program_to_json(program: fb.Program) -> str:
    """A program's tables as JSON."""
    return json.dumps(program, cls=DataclassEncoder)


@dataclass(frozen=True)
class FlatbufferResult:
    """A flatbuffer.

    Attributes:
        data: its bytes.
        max_alignment: the greatest alignment of anything in it.
    """

    data: bytes
    max_alignment: int


def program_to_flatbuffer(
    program: fb.Program,
    *,
    constant_tensor_alignment: int | None = None,
    delegate_alignment: int | None = None,
) -> FlatbufferResult:
    """A program's tables as a flatbuffer, without a header and without segments.

    Args:
        program: the tables.
        constant_tensor_alignment: of the values of `constant_buffer`, at least 16.
        delegate_alignment: of the payloads in `backend_delegate_data`, at least 16.

    Raises:
        ValueError: an alignment is not a power of two.
        ExportError: a field's value does not fit its type.
    """
    constants = _checked("constant_tensor_alignment", constant_tensor_alignment)
    payloads = _checked("delegate_alignment", delegate_alignment)
    data = fb.pack(program, {fb.Buffer: constants, fb.BackendDelegateInlineData: payloads})
    return FlatbufferResult(data, max(constants, payloads, _ALIGNMENT))


def flatbuffer_to_program(program_data: Buffer) -> fb.Program:
    """The tables of a program file, as they are in it; segments after them are not read.

    Raises:
        LoadError: it is no program, or is damaged.
    """
    return fb.unpack(program_data)


def serialize_pte_binary(
    pte_file: PTEFile,
    *,
    extract_delegate_segments: bool = False,
    segment_alignment: int = 128,
    constant_tensor_alignment: int | None = None,
    delegate_alignment: int | None = None,
) -> Cord:
    """The bytes of a program file.

    Args:
        pte_file: its content; not changed.
        extract_delegate_segments: write payloads to segments, not into the flatbuffer.
        segment_alignment: each segment's position is a multiple of it.
        constant_tensor_alignment: likewise for each constant; default 16.
        delegate_alignment: likewise for payloads; default 16 in the flatbuffer, 1 in segments.

    Raises:
        ValueError: an alignment is not a power of two, a payload is none of a delegate, or a
            delegate has none.
        ExportError: a field's value does not fit its type.
    """
    constant_alignment = _checked("constant_tensor_alignment", constant_tensor_alignment)
    payload_alignment = _checked("delegate_alignment", delegate_alignment)
    area = SegmentArea(segment_alignment)
    program = replace(pte_file.program)
    if program.constant_buffer:
        chunks, offsets = pack_parts(
            [b.storage for b in program.constant_buffer], constant_alignment
        )
        program.constant_segment = fb.SubsegmentOffsets(
            area.add(chunks, constant_alignment), offsets
        )
        program.constant_buffer = []
    chunks, offsets = pack_parts([b.storage for b in pte_file.mutable_data or []], 1)
    if any(map(len, chunks)):
        program.mutable_data_segments = [fb.SubsegmentOffsets(area.add(chunks), offsets)]
    if extract_delegate_segments:
        _payloads_to_segments(program, area, delegate_alignment or 1)
    if pte_file.named_data is not None:
        program.named_data = _named_data_to_segments(program, area, pte_file.named_data)
    pieces = Cord()
    for piece in image_of(program, area, payload_alignment):
        pieces.append(bytes(piece))
    return pieces


def _checked(name: str, alignment: int | None) -> int:
    if alignment is None:
        return _ALIGNMENT
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"{name} is {alignment}: give a power of two")
    return alignment


def _payloads_to_segments(program: fb.Program, area: SegmentArea, alignment: int) -> None:
    """Move the payloads that are not empty to segments, equal ones to one."""
    inline = program.backend_delegate_data
    left: list[fb.BackendDelegateInlineData] = []
    used: set[int] = set()
    known: dict[Key, list[int]] = {}

    def moved(delegate: fb.BackendDelegate) -> fb.BackendDelegate:
        place = delegate.processed
        if place.location != fb.DataLocation.INLINE or not 0 <= place.index < len(inline):
            raise ValueError(
                f"the payload of delegate {delegate.id!r} is {place}: it must be one of the "
                f"{len(inline)} in backend_delegate_data"
            )
        used.add(place.index)
        payload = inline[place.index]
        if len(payload.data):
            index = area.add_once(payload.data, known, alignment)
            place = fb.BackendDelegateDataReference(fb.DataLocation.SEGMENT, index)
        else:
            left.append(payload)
            place = fb.BackendDelegateDataReference(fb.DataLocation.INLINE, len(left) - 1)
        return replace(delegate, processed=place)

    program.execution_plan = [
        replace(plan, delegates=[moved(delegate) for delegate in plan.delegates])
        for plan in program.execution_plan
    ]
    if unused := sorted(set(range(len(inline))) - used):
        raise ValueError(f"no delegate has the payloads {unused} of backend_delegate_data")
    program.backend_delegate_data = left


def _named_data_to_segments(
    program: fb.Program, area: SegmentArea, named: NamedDataStoreOutput
) -> list[fb.NamedData]:
    if program.named_data:
        raise ValueError("the program has named data itself: give them in PTEFile.named_data alone")
    segment_of: dict[int, int] = {}
    entries = []
    for key, entry in named.pte_data.items():
        if entry.buffer_index not in segment_of:
            segment_of[entry.buffer_index] = area.add(
                [named.buffers[entry.buffer_index]], entry.alignment or 1
            )
        entries.append(fb.NamedData(key, segment_of[entry.buffer_index]))
    return entries


def deserialize_pte_binary(program_data: Buffer) -> PTEFile:
    """The content of a program file; a constant comes with the padding that follows it.

    Raises:
        LoadError: it is no program file, or is damaged.
    """
    flatbuffer, data = split_pte(memoryview(program_data).cast("B"))
    program = fb.unpack(flatbuffer)
    if extended_header(program_data) is None:
        return PTEFile(program)
    segments = SegmentReader(data, program.segments, Code.INVALID_PROGRAM)
    for plan in program.execution_plan:
        for delegate in plan.delegates:
            _payload_from_segment(program, segments, delegate)
    if program.constant_segment.offsets:
        program.constant_buffer = _buffers(program.constant_segment, segments, "constant")
        program.constant_segment = fb.SubsegmentOffsets(0, [])
    mutable = None
    for place in program.mutable_data_segments or []:
        mutable = [*(mutable or []), *_buffers(place, segments, "mutable data")]
    program.mutable_data_segments = None
    named = _named_data_from_segments(program, segments) if program.named_data else None
    program.named_data, program.segments = [], []
    return PTEFile(program, mutable, named)


def _payload_from_segment(
    program: fb.Program, segments: SegmentReader, delegate: fb.BackendDelegate
) -> None:
    place = delegate.processed
    if place.location == fb.DataLocation.SEGMENT:
        payload = bytes(segments.get(place.index, f"delegate {delegate.id}"))
        program.backend_delegate_data.append(fb.BackendDelegateInlineData(payload))
        delegate.processed = fb.BackendDelegateDataReference(
            fb.DataLocation.INLINE, len(program.backend_delegate_data) - 1
        )


def _buffers(place: fb.SubsegmentOffsets, segments: SegmentReader, what: str) -> list[fb.Buffer]:
    """The parts of a segment, each up to the next."""
    ends = [*place.offsets[1:], len(segments.get(place.segment_index, what))]
    return [
        fb.Buffer(bytes(segments.part(place.segment_index, start, end - start, f"{what} {i}")))
        for i, (start, end) in enumerate(zip(place.offsets, ends, strict=True))
    ]


def _named_data_from_segments(program: fb.Program, segments: SegmentReader) -> NamedDataStoreOutput:
    named = NamedDataStoreOutput()
    known: dict[Key, list[int]] = {}
    for entry in program.named_data or []:
        content = segments.get(entry.segment_index, f"named data {entry.key!r}")
        alike = known.setdefault(key_of(content), [])
        index = next((i for i in alike if named.buffers[i] == content), len(named.buffers))
        if index == len(named.buffers):
            named.buffers.append(bytes(content))
            alike.append(index)
        named.pte_data[entry.key] = DataEntry(index, 1)  # files do not tell alignments
    return named


def serialize_for_executorch(
    emitter_output: EmitterOutput,
    config: ExecutorchBackendConfig,
    data_serializer: DataSerializer,
    named_data_store: NamedDataStoreOutput | None = None,
) -> tuple[Cord, dict[str, Cord]]:
    """A program file and its data files.

    Args:
        emitter_output: the program and its constants.
        config: alignments, and whether payloads are written to segments.
        data_serializer: the format of data files.
        named_data_store: data that backends keep in the program and in data files.

    Returns:
        the program, and data files by name.
    """
    store = named_data_store or NamedDataStoreOutput()
    beside = NamedDataStoreOutput(store.buffers, store.pte_data) if store.pte_data else None
    program = serialize_pte_binary(
        PTEFile(emitter_output.program, emitter_output.mutable_data, beside),
        extract_delegate_segments=config.extract_delegate_segments,
        segment_alignment=config.segment_alignment,
        constant_tensor_alignment=config.constant_tensor_alignment,
        delegate_alignment=config.delegate_alignment,
    )
    if emitter_output.external_constant_map:
        collected = NamedDataStore()
        layouts = _external_layouts(emitter_output.program)
        for tag, indices in emitter_output.external_constant_map.items():
            for name, index in indices.items():
                content = bytes(emitter_output.external_constant_buffer[index])
                collected.add_named_data(
                    name, content, external_tag=tag, tensor_layout=layouts[name]
                )
        collected.merge_named_data_store(
            NamedDataStoreOutput(store.buffers, {}, store.external_data)
        )
        store = collected.get_named_data_store_output()
    files = {
        tag: data_serializer.serialize(DataPayload(store.buffers, entries))
        for tag, entries in store.external_data.items()
    }
    return program, files


def _external_layouts(program: fb.Program) -> Mapping[str, TensorLayout]:
    """The layouts of the tensors in data files, by name."""
    tensors = [
        value.val
        for plan in program.execution_plan
        for value in plan.values
        if isinstance(value.val, fb.Tensor)
    ]
    return {
        extra.fully_qualified_name: TensorLayout(t.scalar_type, t.sizes, t.dim_order)
        for t in tensors
        if (extra := t.extra_tensor_info) is not None
        and extra.location is fb.TensorDataLocation.EXTERNAL
        and extra.fully_qualified_name is not None
    }
