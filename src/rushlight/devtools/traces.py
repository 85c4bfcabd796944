"""ETDump files from and to their tables, as ExecuTorch's functions take them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rushlight.inspect.trace.etdump import read_etdump
from rushlight.schema import etdump as fb
from rushlight.schema.codec import Buffer


class EventName(Enum):
    """The names of events of whole loads, runs and instructions."""

    LOAD_MODEL = "Program::load_method"
    RUN_MODEL = "Method::execute"
    OPERATOR_CALL = "OPERATOR_CALL"
    DELEGATE_CALL = "DELEGATE_CALL"


@dataclass
class Null:
    """None among the values of ExecuTorch's schema, which no trace keeps."""


@dataclass
class String:
    """A text among the values of ExecuTorch's schema, which no trace keeps."""

    string_val: str


@dataclass
class ContainerMetadata:
    """The structure of a method's inputs and outputs, which no trace keeps."""

    encoded_inp_str: str
    encoded_out_str: str


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
