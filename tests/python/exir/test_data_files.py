"""Data files by ExecuTorch's classes."""

from __future__ import annotations

import io

import pytest

from rushlight.errors import LoadError
from rushlight.exir.cord import Cord
from rushlight.exir.data_files import (
    DataPayload,
    FlatTensorConfig,
    FlatTensorHeader,
    FlatTensorSerializer,
)
from rushlight.partition.named_data import DataEntry
from rushlight.schema.flat_tensor import ScalarType, TensorLayout

LAYOUT = TensorLayout(ScalarType.FLOAT, [2], [0])
PAYLOAD = DataPayload(
    [b"12345678", b"abc"],
    {"w": DataEntry(0, 16, LAYOUT), "b": DataEntry(1, 1), "c": DataEntry(1, 1)},
)


def test_a_payload_comes_back() -> None:
    serializer = FlatTensorSerializer(FlatTensorConfig(segment_alignment=256))
    data = serializer.serialize(PAYLOAD)
    back = serializer.deserialize(data)
    assert back.buffers == PAYLOAD.buffers
    assert {k: (e.buffer_index, e.tensor_layout) for k, e in back.named_data.items()} == {
        k: (e.buffer_index, e.tensor_layout) for k, e in PAYLOAD.named_data.items()
    }
    header = FlatTensorHeader.from_bytes(bytes(data)[8:])
    assert header.is_valid() and header.segment_base_offset % 256 == 0
    assert header.to_bytes() == bytes(data)[8:48]
    output = serializer.deserialize_to_named_data_store_output(bytes(data), "weights")
    assert list(output.external_data["weights"]) == ["w", "b", "c"]


def test_what_is_no_data_file_is_refused() -> None:
    with pytest.raises(LoadError):
        FlatTensorSerializer().deserialize(Cord(b"x" * 100))
    with pytest.raises(ValueError, match="too few"):
        FlatTensorHeader.from_bytes(b"x")
    with pytest.raises(ValueError, match="FH01"):
        FlatTensorHeader(0, 0, 0, 0, magic=b"XX01").to_bytes()


def test_a_cord_joins_its_parts() -> None:
    cord = Cord(b"ab")
    cord.append(Cord(b"cd"))
    file = io.BytesIO()
    cord.write_to_file(file)
    assert file.getvalue() == bytes(cord) == b"abcd" and len(cord) == 4
    with pytest.raises(TypeError, match="of str"):
        cord.append("text")  # type: ignore[arg-type]
