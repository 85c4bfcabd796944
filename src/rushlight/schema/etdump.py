"""The trace of a program (.etdp), in ExecuTorch's format: what ran, how long it took, and values.

The file begins with its size, as a uint32, before the flatbuffer.

Made from schema/etdump.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from rushlight.errors import Code
from rushlight.schema import codec
from rushlight.schema.common import DataSegment as DataSegment
from rushlight.schema.common import ScalarType as ScalarType


class ValueType(IntEnum):
    """Which field of a Value is set."""

    NULL = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    DOUBLE = 4
    TENSOR = 5
    TENSOR_LIST = 6
    STRING = 7


@dataclass(slots=True)
class Tensor:
    """A tensor whose bytes are in the debug buffer."""

    scalar_type: ScalarType = ScalarType.BYTE
    sizes: list[int] = field(default_factory=list)
    #: In elements.
    strides: list[int] = field(default_factory=list)
    #: Bytes from the start of the debug buffer; -1 for a tensor without elements.
    offset: int = 0


@dataclass(slots=True)
class Int:
    """A whole number."""

    int_val: int = 0


@dataclass(slots=True)
class Bool:
    """A truth value."""

    bool_val: bool = False


@dataclass(slots=True)
class Float:
    """A number of 32 bits."""

    float_val: float = 0.0


@dataclass(slots=True)
class Double:
    """A number of 64 bits."""

    double_val: float = 0.0


@dataclass(slots=True)
class TensorList:
    """Tensors."""

    tensors: list[Tensor] = field(default_factory=list)


@dataclass(slots=True)
class Value:
    """A value that was recorded."""

    val: ValueType = ValueType.NULL
    tensor: Tensor | None = None
    tensor_list: TensorList | None = None
    int_value: Int | None = None
    float_value: Float | None = None
    double_value: Double | None = None
    bool_value: Bool | None = None
    #: Whether it is an output of the method.
    output: Bool | None = None


@dataclass(slots=True)
class DebugEvent:
    """A value at an instruction, or at a place inside its delegate."""

    chain_index: int = 0
    instruction_id: int = -1
    debug_entry: Value | None = None
    delegate_debug_id_int: int = -1
    delegate_debug_id_str: str | None = None
    name: str | None = None


@dataclass(slots=True)
class AllocationEvent:
    """Bytes that were allocated."""

    #: The index in the run's allocators, plus 1.
    allocator_id: int = 0
    allocation_size: int = 0


@dataclass(slots=True)
class ProfileEvent:
    """A stretch of time."""

    name: str | None = None
    chain_index: int = 0
    instruction_id: int = -1
    #: The delegate's own id for a place in it: this number, or the text that follows.
    delegate_debug_id_int: int = -1
    delegate_debug_id_str: str | None = None
    #: Bytes of the backend's own; of a delegate's call, the backend's name; of a whole run or load,
    #: the name of its method.
    delegate_debug_metadata: codec.Buffer | None = None
    #: Ticks of the clock of the platform.
    start_time: int = 0
    end_time: int = 0


@dataclass(slots=True)
class Event:
    """One of its fields is set; with an allocation also a stretch of no time, of the same name."""

    profile_event: ProfileEvent | None = None
    allocation_event: AllocationEvent | None = None
    debug_event: DebugEvent | None = None


@dataclass(slots=True)
class Allocator:
    """Memory from which a run allocates."""

    name: str = ""


@dataclass(slots=True)
class RunData:
    """A block of events: the load of a method ("Default"), or one run ("Execute")."""

    name: str = ""
    #: The index of the test case in a bundled program.
    bundled_input_index: int = -1
    allocators: list[Allocator] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class ETDump:
    """The whole file."""

    version: int = 0
    run_data: list[RunData] = field(default_factory=list)


_TABLES: Mapping[type, tuple[codec.Field, ...]] = {
    ETDump: (
        codec.Scalar("version", 0, "I", 0),
        codec.Children("run_data", 1, RunData),
    ),
    RunData: (
        codec.Text("name", 0),
        codec.Scalar("bundled_input_index", 1, "i", -1),
        codec.Children("allocators", 2, Allocator),
        codec.Children("events", 3, Event),
    ),
    Allocator: (codec.Text("name", 0),),
    Event: (
        codec.Child("profile_event", 0, ProfileEvent, optional=True),
        codec.Child("allocation_event", 1, AllocationEvent, optional=True),
        codec.Child("debug_event", 2, DebugEvent, optional=True),
    ),
    ProfileEvent: (
        codec.Text("name", 0, optional=True),
        codec.Scalar("chain_index", 1, "i", 0),
        codec.Scalar("instruction_id", 2, "i", -1),
        codec.Scalar("delegate_debug_id_int", 3, "i", -1),
        codec.Text("delegate_debug_id_str", 4, optional=True),
        codec.Bytes("delegate_debug_metadata", 5, optional=True),
        codec.Scalar("start_time", 6, "Q", 0),
        codec.Scalar("end_time", 7, "Q", 0),
    ),
    AllocationEvent: (
        codec.Scalar("allocator_id", 0, "i", 0),
        codec.Scalar("allocation_size", 1, "Q", 0),
    ),
    DebugEvent: (
        codec.Scalar("chain_index", 0, "Q", 0),
        codec.Scalar("instruction_id", 1, "i", -1),
        codec.Child("debug_entry", 2, Value, optional=True),
        codec.Scalar("delegate_debug_id_int", 3, "i", -1),
        codec.Text("delegate_debug_id_str", 4, optional=True),
        codec.Text("name", 5, optional=True),
    ),
    Value: (
        codec.Scalar("val", 0, "b", ValueType.NULL, ValueType),
        codec.Child("tensor", 1, Tensor, optional=True),
        codec.Child("tensor_list", 2, TensorList, optional=True),
        codec.Child("int_value", 3, Int, optional=True),
        codec.Child("float_value", 4, Float, optional=True),
        codec.Child("double_value", 5, Double, optional=True),
        codec.Child("bool_value", 6, Bool, optional=True),
        codec.Child("output", 7, Bool, optional=True),
    ),
    Tensor: (
        codec.Scalar("scalar_type", 0, "b", ScalarType.BYTE, ScalarType),
        codec.Numbers("sizes", 1, "q"),
        codec.Numbers("strides", 2, "q"),
        codec.Scalar("offset", 3, "q", 0),
    ),
    TensorList: (codec.Children("tensors", 0, Tensor),),
    Int: (codec.Scalar("int_val", 0, "q", 0),),
    Float: (codec.Scalar("float_val", 0, "f", 0.0),),
    Double: (codec.Scalar("double_val", 0, "d", 0.0),),
    Bool: (codec.Scalar("bool_val", 0, "?", False),),
}

ETDUMP = codec.Format(ETDump, b"ED00", _TABLES, Code.INVALID_EXTERNAL_DATA)


def pack(etdump: ETDump, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `etdump`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(ETDUMP, etdump, alignments)


def unpack(data: codec.Buffer) -> ETDump:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    etdump = codec.unpack(ETDUMP, data)
    assert isinstance(etdump, ETDump)
    return etdump
