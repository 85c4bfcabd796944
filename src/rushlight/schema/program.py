"""The program file (.pte): methods as lists of values and instructions.

The bulk data lies behind the flatbuffer, in segments.

Made from schema/program.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from rushlight.errors import Code
from rushlight.schema import codec
from rushlight.schema.common import DataSegment as DataSegment
from rushlight.schema.common import ScalarType as ScalarType


class TensorShapeDynamism(IntEnum):
    """How far a tensor's sizes may change between runs."""

    STATIC = 0
    DYNAMIC_BOUND = 1
    DYNAMIC_UNBOUND = 2


class TensorDataLocation(IntEnum):
    """Whether a tensor's bytes belong to the program file or to a data file beside it."""

    SEGMENT = 0
    EXTERNAL = 1


class DeviceType(IntEnum):
    """Whose memory a tensor or an arena is in."""

    CPU = 0
    CUDA = 1


class DataLocation(IntEnum):
    """Whether a delegate's payload lies inside the flatbuffer or in a segment."""

    INLINE = 0
    SEGMENT = 1


@dataclass(slots=True)
class Null:
    """No value: an absent optional argument."""


@dataclass(slots=True)
class Int:
    """A whole number; a symbolic one is computed into it at run time."""

    int_val: int = 0


@dataclass(slots=True)
class Bool:
    """A truth value."""

    bool_val: bool = False


@dataclass(slots=True)
class Double:
    """A floating-point number."""

    double_val: float = 0.0


@dataclass(slots=True)
class String:
    """A text."""

    string_val: str = ""


@dataclass(slots=True)
class IntList:
    """Integers, each an Int elsewhere in the method's values, so that some may be computed at run
    time.
    """

    #: Indices of values.
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class DoubleList:
    """Floating-point numbers."""

    #: The numbers themselves.
    items: list[float] = field(default_factory=list)


@dataclass(slots=True)
class BoolList:
    """Truth values."""

    #: The flags themselves.
    items: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class TensorList:
    """Tensors, each a value of the method."""

    #: Indices of values, all smaller than the list's own.
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class OptionalTensorList:
    """Tensors, each a value of the method, of which some may be missing."""

    #: Indices of values, all smaller than the list's own; -1 or the index of a Null means none.
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class AllocationDetails:
    """Where a planned tensor lies: byte offset `low | high << 32` of the arena `memory_id`."""

    #: Index into non_const_buffer_sizes; 0 is reserved.
    memory_id: int = 0
    memory_offset_low: int = 0
    memory_offset_high: int = 0


@dataclass(slots=True)
class ExtraTensorInfo:
    """Facts that only some tensors need."""

    mutable_data_segments_idx: int = 0
    #: The name of a mutable buffer, or the key of the tensor in the data file.
    fully_qualified_name: str | None = None
    location: TensorDataLocation = TensorDataLocation.SEGMENT
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0


@dataclass(slots=True)
class Tensor:
    """A tensor.

    Its bytes are planned (allocation_info), constant (data_buffer_idx), planned with a first
    content (both), external (extra_tensor_info), or given by the caller (none of them).
    """

    scalar_type: ScalarType = ScalarType.BYTE
    #: Must be 0.
    storage_offset: int = 0
    #: For a dynamic tensor the upper bounds.
    sizes: list[int] = field(default_factory=list)
    #: The dimensions from the outermost in memory to the innermost; as long as sizes.
    dim_order: list[int] = field(default_factory=list)
    requires_grad: bool = False
    #: Index into the offsets of the constant segment, or of the mutable one if the tensor is
    #: planned; 0 is none.
    data_buffer_idx: int = 0
    allocation_info: AllocationDetails | None = None
    #: 0 is strided, the only layout that is run.
    layout: int = 0
    shape_dynamism: TensorShapeDynamism = TensorShapeDynamism.STATIC
    extra_tensor_info: ExtraTensorInfo | None = None


# The kinds of values.
KernelTypes = (
    Null
    | Int
    | Bool
    | Double
    | Tensor
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
)


@dataclass(slots=True)
class EValue:
    """One value of a method; instructions name it by its index."""

    val: KernelTypes


@dataclass(slots=True)
class KernelCall:
    """Runs an operator. The arguments are those of its schema in order, then its results."""

    #: Index into the method's operators.
    op_index: int = 0
    #: Indices of values.
    args: list[int] = field(default_factory=list)


@dataclass(slots=True)
class DelegateCall:
    """Runs a delegate: its inputs, then its outputs."""

    #: Index into the method's delegates.
    delegate_index: int = 0
    #: Indices of values.
    args: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MoveCall:
    """Makes the value `move_to` denote what `move_from` denotes."""

    move_from: int = 0
    move_to: int = 0


@dataclass(slots=True)
class JumpFalseCall:
    """Goes on at `destination_instruction` if the condition is false; the number of instructions is
    a destination too, and ends the chain.
    """

    cond_value_index: int = 0
    destination_instruction: int = 0


@dataclass(slots=True)
class FreeCall:
    """Drops the memory of an unplanned tensor."""

    value_index: int = 0


# The kinds of instructions.
InstructionArguments = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(slots=True)
class Instruction:
    """One entry of a chain."""

    instr_args: InstructionArguments


@dataclass(slots=True)
class Frame:
    """One line of a Python stack."""

    filename: str = ""
    lineno: int = 0
    name: str = ""
    #: The text of the line.
    context: str = ""


@dataclass(slots=True)
class FrameList:
    """A stack, outermost frame first."""

    items: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class Chain:
    """The instructions of a method, run one after the other unless they jump."""

    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    #: One list for each instruction.
    stacktrace: list[FrameList] | None = None


@dataclass(slots=True)
class ContainerMetadata:
    """The structure of a method's arguments and results, as torch writes it in JSON."""

    encoded_inp_str: str = ""
    encoded_out_str: str = ""


@dataclass(slots=True)
class Operator:
    """An operator by name ("aten::add") and overload ("out", or empty)."""

    name: str = ""
    overload: str = ""


@dataclass(slots=True)
class CompileSpec:
    """An option that a backend was compiled with and is started with."""

    key: str = ""
    value: codec.Buffer = b""


@dataclass(slots=True)
class BackendDelegateDataReference:
    """Where the payload of a delegate is."""

    location: DataLocation = DataLocation.INLINE
    #: Index into backend_delegate_data or into segments.
    index: int = 0


@dataclass(slots=True)
class BackendDelegate:
    """A part of the method that a backend compiled and runs."""

    #: The backend's name.
    id: str = ""
    processed: BackendDelegateDataReference = field(default_factory=BackendDelegateDataReference)
    compile_specs: list[CompileSpec] = field(default_factory=list)


@dataclass(slots=True)
class NonConstBufferDevice:
    """Says that an arena lies in the memory of a device."""

    #: The arena's memory id.
    buffer_idx: int = 0
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0


@dataclass(slots=True)
class ExecutionPlan:
    """A method."""

    name: str = ""
    container_meta_type: ContainerMetadata = field(default_factory=ContainerMetadata)
    values: list[EValue] = field(default_factory=list)
    #: Indices of values.
    inputs: list[int] = field(default_factory=list)
    #: Indices of values.
    outputs: list[int] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    delegates: list[BackendDelegate] = field(default_factory=list)
    #: Bytes of each arena; element 0 is reserved and 0.
    non_const_buffer_sizes: list[int] = field(default_factory=list)
    #: The arenas that are not in main memory.
    non_const_buffer_device: list[NonConstBufferDevice] | None = None


@dataclass(slots=True)
class Buffer:
    """A constant inside the flatbuffer, as only old files have it."""

    storage: codec.Buffer = b""


@dataclass(slots=True)
class BackendDelegateInlineData:
    """A delegate's payload inside the flatbuffer."""

    data: codec.Buffer = b""


@dataclass(slots=True)
class SubsegmentOffsets:
    """Where the parts of a segment begin; part 0 is a placeholder for "none"."""

    segment_index: int = 0
    offsets: list[int] = field(default_factory=list)


@dataclass(slots=True)
class NamedData:
    """A segment by name, for backends and tools."""

    key: str = ""
    segment_index: int = 0


@dataclass(slots=True)
class Program:
    """The whole file."""

    version: int = 0
    execution_plan: list[ExecutionPlan] = field(default_factory=list)
    #: Old files only.
    constant_buffer: list[Buffer] = field(default_factory=list)
    backend_delegate_data: list[BackendDelegateInlineData] = field(default_factory=list)
    segments: list[DataSegment] = field(default_factory=list)
    constant_segment: SubsegmentOffsets = field(default_factory=SubsegmentOffsets)
    mutable_data_segments: list[SubsegmentOffsets] | None = None
    named_data: list[NamedData] | None = None


_TABLES: Mapping[type, tuple[codec.Field, ...]] = {
    Program: (
        codec.Scalar("version", 0, "I", 0),
        codec.Children("execution_plan", 1, ExecutionPlan),
        codec.Children("constant_buffer", 2, Buffer),
        codec.Children("backend_delegate_data", 3, BackendDelegateInlineData),
        codec.Children("segments", 4, DataSegment),
        codec.Child("constant_segment", 5, SubsegmentOffsets),
        codec.Children("mutable_data_segments", 6, SubsegmentOffsets, optional=True),
        codec.Children("named_data", 7, NamedData, optional=True),
    ),
    ExecutionPlan: (
        codec.Text("name", 0),
        codec.Child("container_meta_type", 1, ContainerMetadata),
        codec.Children("values", 2, EValue),
        codec.Numbers("inputs", 3, "i"),
        codec.Numbers("outputs", 4, "i"),
        codec.Children("chains", 5, Chain),
        codec.Children("operators", 6, Operator),
        codec.Children("delegates", 7, BackendDelegate),
        codec.Numbers("non_const_buffer_sizes", 8, "q"),
        codec.Children("non_const_buffer_device", 9, NonConstBufferDevice, optional=True),
    ),
    Buffer: (codec.Bytes("storage", 0, align=16),),
    BackendDelegateInlineData: (codec.Bytes("data", 0, align=16),),
    DataSegment: (
        codec.Scalar("offset", 0, "Q", 0),
        codec.Scalar("size", 1, "Q", 0),
    ),
    SubsegmentOffsets: (
        codec.Scalar("segment_index", 0, "I", 0),
        codec.Numbers("offsets", 1, "Q"),
    ),
    NamedData: (
        codec.Text("key", 0),
        codec.Scalar("segment_index", 1, "I", 0),
    ),
    ContainerMetadata: (
        codec.Text("encoded_inp_str", 0),
        codec.Text("encoded_out_str", 1),
    ),
    EValue: (
        codec.Union(
            "val",
            0,
            (
                Null,
                Int,
                Bool,
                Double,
                Tensor,
                String,
                IntList,
                DoubleList,
                BoolList,
                TensorList,
                OptionalTensorList,
            ),
        ),
    ),
    Chain: (
        codec.Numbers("inputs", 0, "i"),
        codec.Numbers("outputs", 1, "i"),
        codec.Children("instructions", 2, Instruction),
        codec.Children("stacktrace", 3, FrameList, optional=True),
    ),
    Operator: (
        codec.Text("name", 0),
        codec.Text("overload", 1),
    ),
    BackendDelegate: (
        codec.Text("id", 0),
        codec.Child("processed", 1, BackendDelegateDataReference),
        codec.Children("compile_specs", 2, CompileSpec),
    ),
    NonConstBufferDevice: (
        codec.Scalar("buffer_idx", 0, "i", 0),
        codec.Scalar("device_type", 1, "b", DeviceType.CPU, DeviceType),
        codec.Scalar("device_index", 2, "b", 0),
    ),
    Null: (),
    Int: (codec.Scalar("int_val", 0, "q", 0),),
    Bool: (codec.Scalar("bool_val", 0, "?", False),),
    Double: (codec.Scalar("double_val", 0, "d", 0.0),),
    Tensor: (
        codec.Scalar("scalar_type", 0, "b", ScalarType.BYTE, ScalarType),
        codec.Scalar("storage_offset", 1, "i", 0),
        codec.Numbers("sizes", 2, "i"),
        codec.Numbers("dim_order", 3, "B"),
        codec.Scalar("requires_grad", 4, "?", False),
        codec.Scalar("data_buffer_idx", 5, "I", 0),
        codec.Child("allocation_info", 6, AllocationDetails, optional=True),
        codec.Scalar("layout", 7, "b", 0),
        codec.Scalar("shape_dynamism", 8, "b", TensorShapeDynamism.STATIC, TensorShapeDynamism),
        codec.Child("extra_tensor_info", 9, ExtraTensorInfo, optional=True),
    ),
    String: (codec.Text("string_val", 0),),
    IntList: (codec.Numbers("items", 0, "q"),),
    DoubleList: (codec.Numbers("items", 0, "d"),),
    BoolList: (codec.Numbers("items", 0, "?"),),
    TensorList: (codec.Numbers("items", 0, "i"),),
    OptionalTensorList: (codec.Numbers("items", 0, "i"),),
    Instruction: (
        codec.Union(
            "instr_args",
            0,
            (
                KernelCall,
                DelegateCall,
                MoveCall,
                JumpFalseCall,
                FreeCall,
            ),
        ),
    ),
    FrameList: (codec.Children("items", 0, Frame),),
    BackendDelegateDataReference: (
        codec.Scalar("location", 0, "b", DataLocation.INLINE, DataLocation),
        codec.Scalar("index", 1, "I", 0),
    ),
    CompileSpec: (
        codec.Text("key", 0),
        codec.Bytes("value", 1),
    ),
    AllocationDetails: (
        codec.Scalar("memory_id", 0, "I", 0),
        codec.Scalar("memory_offset_low", 1, "I", 0),
        codec.Scalar("memory_offset_high", 2, "I", 0),
    ),
    ExtraTensorInfo: (
        codec.Scalar("mutable_data_segments_idx", 0, "Q", 0),
        codec.Text("fully_qualified_name", 1, optional=True),
        codec.Scalar("location", 2, "b", TensorDataLocation.SEGMENT, TensorDataLocation),
        codec.Scalar("device_type", 3, "b", DeviceType.CPU, DeviceType),
        codec.Scalar("device_index", 4, "b", 0),
    ),
    KernelCall: (
        codec.Scalar("op_index", 0, "i", 0),
        codec.Numbers("args", 1, "i"),
    ),
    DelegateCall: (
        codec.Scalar("delegate_index", 0, "i", 0),
        codec.Numbers("args", 1, "i"),
    ),
    MoveCall: (
        codec.Scalar("move_from", 0, "i", 0),
        codec.Scalar("move_to", 1, "i", 0),
    ),
    JumpFalseCall: (
        codec.Scalar("cond_value_index", 0, "i", 0),
        codec.Scalar("destination_instruction", 1, "i", 0),
    ),
    FreeCall: (codec.Scalar("value_index", 0, "i", 0),),
    Frame: (
        codec.Text("filename", 0),
        codec.Scalar("lineno", 1, "i", 0),
        codec.Text("name", 2),
        codec.Text("context", 3),
    ),
}

PROGRAM = codec.Format(Program, b"ET12", _TABLES, Code.INVALID_PROGRAM)


def pack(program: Program, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `program`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(PROGRAM, program, alignments)


def unpack(data: codec.Buffer) -> Program:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    program = codec.unpack(PROGRAM, data)
    assert isinstance(program, Program)
    return program
