"""The bytes of .pte and .ptd files, and that reading a file gives what was written."""

from __future__ import annotations

import io
import math
import struct

import numpy as np
import pytest
import serialize_cases as cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rushlight.errors import Code, ExportError
from rushlight.schema import flat_tensor
from rushlight.schema import program as fb
from rushlight.schema.flat_tensor import FLAT_TENSOR, FlatTensor, TensorLayout
from rushlight.serialize.file import PTEFile
from rushlight.serialize.ptd import NamedTensor, read_ptd, write_ptd, write_ptd_to
from rushlight.serialize.pte import read_pte, write_pte, write_pte_to
from rushlight.serialize.segments import as_bytes

PROGRAMS = {
    "add": cases.add_program,
    "plain": cases.plain_program,
    "full": cases.full_program,
}


def equal(a: PTEFile, b: PTEFile) -> bool:
    def contents(pte: PTEFile) -> list[object]:
        lists = (pte.constants, pte.mutable_data, pte.delegate_blobs, pte.named_data.values())
        return [[bytes(as_bytes(data)) for data in part] for part in lists]

    return (
        a.program.execution_plan == b.program.execution_plan
        and contents(a) == contents(b)
        and list(a.named_data) == list(b.named_data)
    )


# ---- The flatbuffer ----


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(cases.tables(fb.PROGRAM, fb.Program))
def test_any_program_comes_back(program: fb.Program) -> None:
    assert fb.unpack(fb.pack(program)) == program


@given(cases.tables(FLAT_TENSOR, FlatTensor))
def test_any_data_table_comes_back(table: FlatTensor) -> None:
    assert flat_tensor.unpack(flat_tensor.pack(table)) == table


def test_negative_zero_is_not_the_default() -> None:
    plan = fb.ExecutionPlan(values=[fb.EValue(fb.Double(-0.0)), fb.EValue(fb.Double(0.0))])
    values = fb.unpack(fb.pack(fb.Program(execution_plan=[plan]))).execution_plan[0].values
    signs = [math.copysign(1, v.val.double_val) for v in values if isinstance(v.val, fb.Double)]
    assert signs == [-1.0, 1.0]


def test_nan_and_infinities() -> None:
    numbers = [float("inf"), -float("inf"), float("nan")]
    plan = fb.ExecutionPlan(values=[fb.EValue(fb.DoubleList(numbers))])
    back = fb.unpack(fb.pack(fb.Program(execution_plan=[plan]))).execution_plan[0].values[0].val
    assert isinstance(back, fb.DoubleList)
    assert struct.pack("<3d", *back.items) == struct.pack("<3d", *numbers)


def test_lists_that_came_back_are_not_shared() -> None:
    values = [cases.tensor([2, 3], at=0), cases.tensor([2, 3], at=0)]
    program = fb.Program(execution_plan=[fb.ExecutionPlan(values=values)])
    first, second = (v.val for v in fb.unpack(fb.pack(program)).execution_plan[0].values)
    assert isinstance(first, fb.Tensor) and isinstance(second, fb.Tensor)
    first.sizes[0] = 9
    assert second.sizes == [2, 3]


@pytest.mark.parametrize(
    ("program", "field"),
    [
        (fb.Program(version=-1), "Program.version"),
        (fb.Program(version="1"), "Program.version"),
        (fb.Program(segments=None), "Program.segments"),
        (fb.Program(named_data=[fb.NamedData(key=7)]), "NamedData.key"),
        (
            fb.Program(execution_plan=[fb.ExecutionPlan(inputs=[1 << 31])]),
            "ExecutionPlan.inputs",
        ),
        (
            fb.Program(execution_plan=[fb.ExecutionPlan(values=[fb.EValue(5)])]),
            "EValue.val",
        ),
    ],
)
def test_what_a_field_cannot_hold_is_named(program: fb.Program, field: str) -> None:
    with pytest.raises(ExportError, match=field.replace(".", r"\.")) as caught:
        fb.pack(program)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_a_large_program_comes_back() -> None:
    values = [cases.tensor([1, 2, 3, i % 50], at=i * 16) for i in range(5000)]
    plan = cases.method(
        values,
        [("aten::add.out", [i, i + 1, 2, i + 3, i + 3]) for i in range(2000)],
        inputs=[0],
        outputs=[1],
        arena=1 << 20,
    )
    program = fb.Program(execution_plan=[plan])
    assert fb.unpack(fb.pack(program)) == program


# ---- .pte ----


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_come_back(name: str) -> None:
    pte = PROGRAMS[name]()
    data = write_pte(pte)
    back = read_pte(data)
    assert equal(back, pte)
    assert write_pte(back) == data
    file = io.BytesIO()
    assert write_pte_to(file, pte) == len(data)
    assert file.getvalue() == data


def test_writing_changes_nothing_of_the_callers() -> None:
    pte, same = cases.full_program(), cases.full_program()
    write_pte(pte)
    assert equal(pte, same) and pte.program == same.program


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 70), max_size=6),
    named=st.dictionaries(st.text(max_size=5), st.binary(max_size=300), max_size=4),
    blobs=st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=4),
    constant_alignment=st.sampled_from([1, 4, 16, 64, 256]),
    segment_alignment=st.sampled_from([16, 128, 4096]),
    delegate_alignment=st.sampled_from([1, 16, 64]),
)
def test_any_data_comes_back(
    sizes: list[int],
    named: dict[str, bytes],
    blobs: list[tuple[bytes, bool]],
    constant_alignment: int,
    segment_alignment: int,
    delegate_alignment: int,
) -> None:
    constants = [np.full(size, i + 1, np.float32) for i, size in enumerate(sizes)]
    values = [cases.tensor([size], constant=i + 1) for i, size in enumerate(sizes)]
    delegates = [
        fb.BackendDelegate("B", fb.BackendDelegateDataReference(fb.DataLocation(inside), i))
        for i, (_, inside) in enumerate(blobs)
    ]
    plan = cases.method(values, [], inputs=[], outputs=[], delegates=delegates)
    pte = PTEFile(
        fb.Program(execution_plan=[plan]),
        constants=[b"", *constants],
        named_data=dict(named),
        delegate_blobs=[blob for blob, _ in blobs],
    )
    data = write_pte(
        pte,
        constant_alignment=constant_alignment,
        segment_alignment=segment_alignment,
        delegate_alignment=delegate_alignment,
    )
    back = read_pte(data)
    assert [bytes(as_bytes(c)) for c in back.constants[1:]] == [c.tobytes() for c in constants]
    assert {k: bytes(as_bytes(v)) for k, v in back.named_data.items()} == named
    payloads = back.program.execution_plan[0].delegates
    payload_bytes = [bytes(as_bytes(back.delegate_blobs[d.processed.index])) for d in payloads]
    assert payload_bytes == [blob for blob, _ in blobs]

    root = fb.unpack(data)
    base = segment_base(data)
    assert all((base + s.offset) % segment_alignment == 0 for s in root.segments)
    assert all(o % constant_alignment == 0 for o in root.constant_segment.offsets)
    for blob in root.backend_delegate_data:
        content = bytes(as_bytes(blob.data))
        if len(content) > 8:
            assert data.find(content) % max(16, delegate_alignment) == 0


def segment_base(data: bytes) -> int:
    return int(struct.unpack_from("<Q", data, 24)[0]) if data[8:12] == b"eh00" else 0


def test_header_and_segments() -> None:
    pte = cases.full_program()
    data = write_pte(pte)
    assert data[4:8] == b"ET12"
    magic, length, program_size, base, data_size = struct.unpack_from("<4sIQQQ", data, 8)
    assert (magic, length) == (b"eh00", 32)
    assert base % 128 == 0 and program_size <= base < program_size + 128
    assert base + data_size == len(data)
    assert not any(data[program_size:base])
    root = fb.unpack(data[:program_size])
    # Constants, mutable data, one payload, named data: "{}" is stored once.
    assert [s.size for s in root.segments] == [20, 12, 240, 2, 100]
    assert [s.offset for s in root.segments] == [0, 128, 256, 512, 640]
    assert root.constant_segment == fb.SubsegmentOffsets(0, [0, 0, 16])
    assert root.mutable_data_segments == [fb.SubsegmentOffsets(1, [0, 0])]
    assert root.named_data == [
        fb.NamedData("rushlight/contract", 3),
        fb.NamedData("weights", 4),
        fb.NamedData("same", 3),
    ]
    assert root.constant_buffer == []
    assert [bytes(as_bytes(b.data)) for b in root.backend_delegate_data] == [b"payload of B"]
    assert data[base + 640 :] == bytes(range(100))


def test_root_offset_is_corrected_for_the_header() -> None:
    """The first four bytes lead to the same table as they did without the header."""
    with_data = write_pte(cases.add_program())
    assert int.from_bytes(with_data[:4], "little") >= 40
    assert fb.unpack(with_data).execution_plan[0].name == "forward"


def test_constant_offsets_of_the_format() -> None:
    sizes = [40, 16, 16, 16]
    values = [cases.tensor([size // 4], constant=i + 1) for i, size in enumerate(sizes)]
    plan = cases.method(values, [], inputs=[], outputs=[])
    constants = [b"", *(bytes([i + 1]) * size for i, size in enumerate(sizes))]
    root = fb.unpack(write_pte(PTEFile(fb.Program(execution_plan=[plan]), constants)))
    assert root.constant_segment.offsets == [0, 0, 48, 64, 80]
    assert root.segments[0].size == 96


def test_without_data_there_is_no_header() -> None:
    data = write_pte(cases.plain_program())
    assert data[8:12] != b"eh00"
    root = fb.unpack(data)
    assert root.segments == [fb.DataSegment(0, 0)]
    assert root.constant_segment == fb.SubsegmentOffsets(0, [0])
    assert root.mutable_data_segments is None and root.named_data is None


def test_the_smallest_file() -> None:
    data = write_pte(PTEFile(fb.Program()))
    assert len(data) >= 64
    assert read_pte(data).program.execution_plan == []


def test_equal_payloads_are_stored_once() -> None:
    def delegate(i: int, location: fb.DataLocation) -> fb.BackendDelegate:
        return fb.BackendDelegate("B", fb.BackendDelegateDataReference(location, i))

    inside, outside = fb.DataLocation.INLINE, fb.DataLocation.SEGMENT
    delegates = [
        delegate(0, outside),
        delegate(1, outside),
        delegate(2, outside),
        delegate(3, outside),
        delegate(0, inside),
        delegate(1, inside),
    ]
    plan = cases.method([], [], inputs=[], outputs=[], delegates=delegates)
    blobs = [b"a" * 10, bytearray(b"a" * 10), b"b" * 10, b""]
    data = write_pte(PTEFile(fb.Program(execution_plan=[plan]), delegate_blobs=list(blobs)))
    root = fb.unpack(data)
    assert [s.size for s in root.segments] == [0, 10, 10]
    places = [(d.processed.location, d.processed.index) for d in root.execution_plan[0].delegates]
    # An empty payload is inline, wherever it was wanted.
    assert places == [
        (outside, 1),
        (outside, 1),
        (outside, 2),
        (inside, 0),
        (inside, 1),
        (inside, 1),
    ]


@pytest.mark.parametrize(
    "option", ["constant_alignment", "segment_alignment", "delegate_alignment"]
)
@pytest.mark.parametrize("alignment", [0, -4, 96])
def test_alignments_are_powers_of_two(option: str, alignment: int) -> None:
    with pytest.raises(ExportError, match=f"{option} is {alignment}"):
        write_pte(cases.add_program(), **{option: alignment})


def test_alignment_of_one_key() -> None:
    pte = cases.plain_program()
    pte.named_data = {"a": b"1", "pages": b"2" * 10, "also": b"2" * 10}
    data = write_pte(pte, named_data_alignment={"also": 4096, "a": 3})
    root = fb.unpack(data)
    base = segment_base(data)
    assert root.named_data is not None
    places = {n.key: root.segments[n.segment_index].offset for n in root.named_data}
    assert places["pages"] == places["also"] and places["also"] % 4096 == 0
    assert base % 128 == 0 and places["a"] % 384 == 0


def test_arrays_of_any_kind_are_taken() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert as_bytes(array.T) == array.T.tobytes()
    assert as_bytes(array[:0]) == b""
    assert as_bytes(np.float32(1.5).reshape(())) == np.float32(1.5).tobytes()
    assert as_bytes(memoryview(array)) == array.tobytes()


def test_constants_are_not_copied_on_the_way_to_a_file() -> None:
    class Sink(io.RawIOBase):
        def __init__(self) -> None:
            self.seen: list[object] = []

        def write(self, chunk: object) -> int:
            self.seen.append(chunk)
            return len(chunk)

    pte = cases.add_program()
    sink = Sink()
    write_pte_to(sink, pte)
    constant = pte.constants[1]
    assert isinstance(constant, np.ndarray)
    assert any(
        isinstance(chunk, memoryview) and len(chunk) and np.shares_memory(chunk, constant)
        for chunk in sink.seen
    )


def test_reading_gives_views() -> None:
    data = write_pte(cases.add_program())
    constant = read_pte(data).constants[1]
    assert np.shares_memory(np.frombuffer(constant, np.uint8), np.frombuffer(data, np.uint8))


def test_old_files_with_constants_inside() -> None:
    pte = cases.add_program()
    program = pte.program
    program.constant_buffer = [fb.Buffer(bytes(as_bytes(c))) for c in pte.constants]
    back = read_pte(fb.pack(program).ljust(64, b"\0"))
    assert [bytes(as_bytes(c)) for c in back.constants] == [
        bytes(as_bytes(c)) for c in cases.add_program().constants
    ]


def test_a_header_without_data_size_and_bytes_behind_the_end() -> None:
    data = bytearray(write_pte(cases.full_program()))
    struct.pack_into("<I", data, 12, 24)
    assert equal(read_pte(data), cases.full_program())
    assert equal(read_pte(write_pte(cases.full_program()) + b"trailing"), cases.full_program())


# ---- The rules of the format ----


def _planned(pte: PTEFile, i: int) -> fb.Tensor:
    value = pte.program.execution_plan[0].values[i].val
    assert isinstance(value, fb.Tensor)
    return value


def _set_value(i: int, value: fb.KernelTypes) -> object:
    return lambda plan: plan.values.__setitem__(i, fb.EValue(value))


def _set_call(call: fb.InstructionArguments) -> object:
    return lambda plan: plan.chains[0].instructions.__setitem__(0, fb.Instruction(call))


RULES = {
    "chain": lambda p: p.chains.clear(),
    "arena 0": lambda p: p.non_const_buffer_sizes.__setitem__(0, 8),
    "no arenas": lambda p: p.non_const_buffer_sizes.clear(),
    "input": lambda p: p.inputs.append(6),
    "output": lambda p: p.outputs.append(-1),
    "dim order length": lambda p: p.values[0].val.dim_order.pop(),
    "dim order": lambda p: p.values[0].val.dim_order.__setitem__(0, 1),
    "negative size": lambda p: p.values[2].val.sizes.__setitem__(0, -2),
    "rank": _set_value(2, fb.Tensor(sizes=[1] * 17, dim_order=list(range(17)))),
    "storage offset": lambda p: setattr(p.values[0].val, "storage_offset", 4),
    "layout": lambda p: setattr(p.values[0].val, "layout", 1),
    "constant index": lambda p: setattr(p.values[0].val, "data_buffer_idx", 3),
    "constant size": lambda p: setattr(p.values[0].val, "sizes", [2, 4]),
    "mutable index": lambda p: setattr(p.values[2].val, "data_buffer_idx", 1),
    "memory id 0": lambda p: setattr(p.values[2].val.allocation_info, "memory_id", 0),
    "memory id": lambda p: setattr(p.values[2].val.allocation_info, "memory_id", 2),
    "arena end": lambda p: setattr(p.values[2].val.allocation_info, "memory_offset_low", 1001),
    "arena end high": lambda p: setattr(p.values[2].val.allocation_info, "memory_offset_high", 1),
    "external without name": lambda p: setattr(
        p.values[0].val,
        "extra_tensor_info",
        fb.ExtraTensorInfo(location=fb.TensorDataLocation.EXTERNAL),
    ),
    "IntList of tensors": _set_value(3, fb.IntList([2])),
    "IntList range": _set_value(3, fb.IntList([6])),
    "list before items": _set_value(3, fb.TensorList([4])),
    "optional list range": _set_value(3, fb.OptionalTensorList([-2])),
    "operator": _set_call(fb.KernelCall(1, [])),
    "argument": _set_call(fb.KernelCall(0, [6])),
    "delegate": _set_call(fb.DelegateCall(0, [])),
    "jump": _set_call(fb.JumpFalseCall(0, 3)),
    "condition": _set_call(fb.JumpFalseCall(7, 0)),
    "move": _set_call(fb.MoveCall(0, 6)),
    "free": _set_call(fb.FreeCall(-1)),
    "payload": lambda p: p.delegates.append(fb.BackendDelegate("B")),
    "stack trace": lambda p: setattr(p.chains[0], "stacktrace", []),
}


@pytest.mark.parametrize("rule", RULES)
def test_broken_rules_are_refused(rule: str) -> None:
    pte = cases.add_program()
    RULES[rule](pte.program.execution_plan[0])
    with pytest.raises(ExportError, match="forward") as caught:
        write_pte(pte)
    assert caught.value.code == Code.INVALID_PROGRAM


def test_two_methods_of_one_name_and_a_constant_0() -> None:
    pte = cases.add_program()
    pte.program.execution_plan *= 2
    with pytest.raises(ExportError, match="two methods"):
        write_pte(pte)
    pte = cases.add_program()
    pte.constants[0] = b"x"
    with pytest.raises(ExportError, match="element 0"):
        write_pte(pte)


def test_room_behind_tensors_of_xnnpack() -> None:
    def program(arena: int, backend: str) -> PTEFile:
        values = [cases.tensor([4], at=0), cases.tensor([4], at=16)]
        delegates = [fb.BackendDelegate(backend)]
        plan = cases.method(values, [], inputs=[0], outputs=[1], delegates=delegates, arena=arena)
        plan.chains[0].instructions = [fb.Instruction(fb.DelegateCall(0, [0, 1]))]
        return PTEFile(fb.Program(execution_plan=[plan]), delegate_blobs=[b"x"])

    write_pte(program(32, "Other"))
    write_pte(program(96, "XnnpackBackend"))
    with pytest.raises(ExportError, match="XNNPACK may read"):
        write_pte(program(95, "XnnpackBackend"))


# ---- .ptd ----


def data_file() -> dict[str, NamedTensor]:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    layout = TensorLayout(fb.ScalarType.FLOAT, [2, 3], [0, 1])
    return {
        "l.weight": NamedTensor(weight, layout),
        "tied": NamedTensor(weight.copy(), layout),
        "packed": NamedTensor(b"opaque", None, alignment=256),
    }


def test_data_files_come_back() -> None:
    tensors = data_file()
    data = write_ptd(tensors)
    back = read_ptd(data)
    assert list(back) == list(tensors)
    for key, tensor in tensors.items():
        assert bytes(as_bytes(back[key].data)) == bytes(as_bytes(tensor.data))
        assert back[key].layout == tensor.layout
    file = io.BytesIO()
    assert write_ptd_to(file, tensors) == len(data)
    assert file.getvalue() == data
    assert read_ptd(write_ptd({})) == {}


def test_layout_of_a_data_file() -> None:
    data = write_ptd(data_file())
    assert data[4:8] == b"FT01"
    magic, length, offset, size, base, data_size = struct.unpack_from("<4sIQQQQ", data, 8)
    assert (magic, length, offset) == (b"FH01", 40, 48)
    assert base % 128 == 0 and offset + size <= base
    assert base + data_size == len(data)
    root = flat_tensor.unpack(data[: offset + size])
    assert [(s.offset, s.size) for s in root.segments] == [(0, 24), (256, 6)]
    assert [n.segment_index for n in root.named_data] == [0, 0, 1]


@pytest.mark.parametrize(
    "layout",
    [
        TensorLayout(fb.ScalarType.FLOAT, [2, 2], [0, 1]),
        TensorLayout(fb.ScalarType.FLOAT, [2, 3], [0]),
        TensorLayout(fb.ScalarType.FLOAT, [2, 3], [1, 1]),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(layout: TensorLayout) -> None:
    with pytest.raises(ExportError, match="w: "):
        write_ptd({"w": NamedTensor(np.zeros((2, 3), np.float32), layout)})
