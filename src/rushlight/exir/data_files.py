"""Data files (.ptd) by ExecuTorch's classes: payloads of buffers with keys, and a serializer."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rushlight.exir.cord import Bytes, Cord
from rushlight.partition.named_data import DataEntry, NamedDataStoreOutput
from rushlight.serialize.ptd import NamedTensor, read_ptd, write_ptd


@dataclass
class DataPayload:
    """What a data file holds.

    Attributes:
        buffers: the distinct values.
        named_data: by key, which buffer it is, and how it is read.
    """

    buffers: list[bytes | np.ndarray] = field(default_factory=list)
    named_data: dict[str, DataEntry] = field(default_factory=dict)


class DataSerializer(ABC):
    """A format of data files."""

    @abstractmethod
    def serialize(self, data: DataPayload) -> Cord:
        """The bytes of a file."""

    @abstractmethod
    def deserialize(self, blob: Cord) -> DataPayload:
        """What a file holds."""


@dataclass
class FlatTensorConfig:
    """Options of a data file.

    Attributes:
        segment_alignment: every value's position in the file is a multiple of it.
    """

    segment_alignment: int = 128


@dataclass
class FlatTensorHeader:
    """What is at byte 8 of a data file: where its parts are.

    Attributes:
        flatbuffer_offset, flatbuffer_size: of the table of contents.
        segment_base_offset, segment_data_size: of the values.
        magic, length: of the header itself.
    """

    EXPECTED_MAGIC: ClassVar[bytes] = b"FH01"
    EXPECTED_LENGTH: ClassVar[int] = 40
    _FORM: ClassVar[struct.Struct] = struct.Struct("<4sIQQQQ")

    flatbuffer_offset: int
    flatbuffer_size: int
    segment_base_offset: int
    segment_data_size: int
    magic: bytes = EXPECTED_MAGIC
    length: int = EXPECTED_LENGTH

    @classmethod
    def from_bytes(cls, data: bytes) -> FlatTensorHeader:
        """The header of a file.

        Args:
            data: from byte 8 of the file on.

        Raises:
            ValueError: there are too few bytes.
        """
        if len(data) < cls.EXPECTED_LENGTH:
            raise ValueError(
                f"{len(data)} bytes are too few for the header of a data file, which has "
                f"{cls.EXPECTED_LENGTH}"
            )
        magic, length, offset, size, base, data_size = cls._FORM.unpack_from(data)
        return cls(offset, size, base, data_size, magic, length)

    def is_valid(self) -> bool:
        """Whether it is the header of a data file."""
        return self.magic == self.EXPECTED_MAGIC and self.length >= self.EXPECTED_LENGTH

    def to_bytes(self) -> bytes:
        """The header as bytes.

        Raises:
            ValueError: it is not valid.
        """
        if not self.is_valid():
            raise ValueError(
                f"magic is {self.magic!r} and length {self.length}; a data file has "
                f"{self.EXPECTED_MAGIC!r} and {self.EXPECTED_LENGTH}"
            )
        return self._FORM.pack(
            self.magic,
            self.length,
            *(self.flatbuffer_offset, self.flatbuffer_size),
            *(self.segment_base_offset, self.segment_data_size),
        )


class FlatTensorSerializer(DataSerializer):
    """The format of data files (.ptd).

    Args:
        config: its options.
    """

    def __init__(self, config: FlatTensorConfig | None = None) -> None:
        self.config = config or FlatTensorConfig()

    def serialize(self, data: DataPayload) -> Cord:
        """The bytes of a file; equal buffers are stored once.

        Raises:
            ExportError: a buffer is not as long as its layout says.
        """
        tensors = {
            key: NamedTensor(data.buffers[entry.buffer_index], entry.tensor_layout, entry.alignment)
            for key, entry in data.named_data.items()
        }
        return Cord(write_ptd(tensors, segment_alignment=self.config.segment_alignment))

    def deserialize(self, blob: Cord | Bytes) -> DataPayload:
        """What a file holds; alignments are not kept in it.

        Raises:
            LoadError: it is no data file, or is damaged.
        """
        payload = DataPayload()
        known: dict[bytes, int] = {}
        for key, tensor in read_ptd(bytes(blob)).items():
            content = bytes(tensor.data)
            index = known.setdefault(content, len(payload.buffers))
            if index == len(payload.buffers):
                payload.buffers.append(content)
            payload.named_data[key] = DataEntry(index, 1, tensor.layout)
        return payload

    def deserialize_to_named_data_store_output(
        self, blob: bytes, name: str
    ) -> NamedDataStoreOutput:
        """What a file holds, as data that a program keeps in the file of this name.

        Args:
            blob: the file's bytes.
            name: of the file, without ".ptd".
        """
        payload = self.deserialize(blob)
        return NamedDataStoreOutput(list(payload.buffers), {}, {name: payload.named_data})
