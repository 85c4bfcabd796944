"""Program files by ExecuTorch's functions, against its own reader and writer."""

from __future__ import annotations

import json
import math

import pytest

from rushlight.errors import LoadError
from rushlight.exir.program_files import (
    ExtendedHeader,
    PTEFile,
    deserialize_pte_binary,
    extended_header,
    flatbuffer_to_program,
    program_to_flatbuffer,
    program_to_json,
    serialize_pte_binary,
)
from rushlight.partition.named_data import DataEntry, NamedDataStoreOutput
from rushlight.schema import program as fb
from rushlight.schema.json_text import DataclassEncoder, json_to_dataclass
from rushlight.serialize.pte import read_pte


def program() -> fb.Program:
    """A method with a constant, and a delegate whose payload is inline."""
    place = fb.BackendDelegateDataReference(fb.DataLocation.INLINE, 0)
    tensor = fb.Tensor(fb.ScalarType.FLOAT, sizes=[2], dim_order=[0], data_buffer_idx=1)
    plan = fb.ExecutionPlan(
        name="forward",
        values=[fb.EValue(tensor), fb.EValue(fb.Int(3)), fb.EValue(fb.Double(math.inf))],
        outputs=[0],
        chains=[fb.Chain(instructions=[fb.Instruction(fb.DelegateCall(0, [0]))])],
        delegates=[fb.BackendDelegate("Demo", place, [fb.CompileSpec("k", b"v")])],
        non_const_buffer_sizes=[0],
    )
    return fb.Program(
        execution_plan=[plan],
        constant_buffer=[fb.Buffer(b""), fb.Buffer(bytes(8))],
        backend_delegate_data=[fb.BackendDelegateInlineData(b"payload")],
        named_data=[],
    )


def named() -> NamedDataStoreOutput:
    entries = {"a": DataEntry(0, 1), "b": DataEntry(1, 256), "c": DataEntry(0, 1)}
    return NamedDataStoreOutput([b"first", b"second"], entries)


@pytest.mark.parametrize("in_segments", [False, True])
def test_a_file_holds_all_that_was_given(in_segments: bool) -> None:
    file = PTEFile(program(), [fb.Buffer(b""), fb.Buffer(b"state")], named())
    data = bytes(serialize_pte_binary(file, extract_delegate_segments=in_segments))
    assert file.program == program(), "the given program was changed"
    back = deserialize_pte_binary(data)
    assert back.program == program()
    assert back.mutable_data == file.mutable_data
    assert back.named_data is not None and back.named_data.buffers == [b"first", b"second"]
    assert [(k, e.buffer_index) for k, e in back.named_data.pte_data.items()] == [
        *(("a", 0), ("b", 1), ("c", 0)),
    ]
    # Our own reader, which checks every place, finds the same.
    read = read_pte(data)
    assert [bytes(blob) for blob in read.delegate_blobs] == [b"payload"]
    assert [bytes(one) for one in read.constants] == [b"", bytes(8)]
    header = extended_header(data)
    assert header is not None and header.is_valid()
    assert header.segment_base_offset + header.segment_data_size == len(data)
    segment = flatbuffer_to_program(data).segments[-1]
    assert (header.segment_base_offset + segment.offset) % 128 == 0
    with pytest.raises(LoadError):
        deserialize_pte_binary(data[:-1])


def test_a_file_without_segments_has_no_header() -> None:
    given = program()
    given.constant_buffer, given.execution_plan[0].values = [], []
    given.execution_plan[0].outputs = []
    data = bytes(serialize_pte_binary(PTEFile(given)))
    assert extended_header(data) is None
    assert deserialize_pte_binary(data) == PTEFile(given)
    assert flatbuffer_to_program(program_to_flatbuffer(given).data) == given


def test_what_cannot_be_written_is_refused() -> None:
    for option in ("constant_tensor_alignment", "delegate_alignment"):
        with pytest.raises(ValueError, match=f"{option} is 12: give a power of two"):
            serialize_pte_binary(PTEFile(program()), **{option: 12})  # type: ignore[arg-type]
    unused = program()
    unused.backend_delegate_data.append(fb.BackendDelegateInlineData(b"more"))
    with pytest.raises(ValueError, match=r"no delegate has the payloads \[1\]"):
        serialize_pte_binary(PTEFile(unused), extract_delegate_segments=True)
    missing = program()
    missing.backend_delegate_data = []
    with pytest.raises(ValueError, match="delegate 'Demo'"):
        serialize_pte_binary(PTEFile(missing), extract_delegate_segments=True)


def test_headers() -> None:
    header = ExtendedHeader(0x1122, 0x5566, 0x3344)
    data = header.to_bytes()
    assert data.hex() == ("6568303020000000221100000000000066550000000000004433000000000000")
    assert ExtendedHeader.from_bytes(data) == header
    assert not ExtendedHeader.from_bytes(b"x" * 32).is_valid()
    with pytest.raises(ValueError, match="31 bytes are too few"):
        ExtendedHeader.from_bytes(data[:31])


def test_json_tells_the_type_of_a_value() -> None:
    told = json.loads(program_to_json(program()))
    value = told["execution_plan"][0]["values"][1]
    assert value == {"val": {"int_val": 3}, "val_type": "Int"}
    assert json_to_dataclass(told, fb.Program) == program()
    with pytest.raises(TypeError, match="there is no 'key', which NamedData must have"):
        json_to_dataclass({"segment_index": 1}, fb.NamedData)
    with pytest.raises(TypeError):
        json.dumps(object(), cls=DataclassEncoder)
