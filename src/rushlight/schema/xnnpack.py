"""The graph in a payload of ExecuTorch's delegate XnnpackBackend.

Behind the payload's header stands this flatbuffer, and the constants lie in the program's named
data or in the payload.

Made from schema/xnnpack.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from rushlight.errors import Code
from rushlight.schema import codec


class Datatype(IntEnum):
    """How the elements of a value are stored.

    The numbers are the format's own, not the library's.
    """

    INVALID = 0
    FP32 = 1
    FP16 = 2
    QINT8 = 3
    QUINT8 = 4
    QINT32 = 5
    QCINT8 = 6
    QCINT32 = 7
    QCINT4 = 8
    QDINT8 = 9
    QBINT4 = 10
    QPINT8 = 11
    INT32 = 12
    PFP32 = 13
    BF16 = 14


@dataclass(slots=True)
class PerChannelQuant:
    """A scale for each index of one dimension."""

    scale: list[float] = field(default_factory=list)
    channel_dim: int = 0
    #: Where the scales are a constant: its index, else 0.
    scale_buffer_idx: int = 0
    num_scales: int = 0


@dataclass(slots=True)
class PerTensorQuant:
    """One scale and zero point for all elements."""

    scale: float = 0.0
    zero_point: int = 0


@dataclass(slots=True)
class PerTokenDynamicQuant:
    """A scale and zero point for each row, found when it is quantised."""

    #: Dimensions that make a row, counted from the last.
    num_nonbatch_dims: int = 0


@dataclass(slots=True)
class PerChannelGroupQuant:
    """A scale for each group of `group_size` neighbours within a channel."""

    scale: list[float] = field(default_factory=list)
    channel_dim: int = 0
    group_size: int = 0
    #: In old payloads only.
    scale_bf16: list[int] = field(default_factory=list)
    #: Where the scales are a constant, of bfloat16: its index, else 0.
    scale_buffer_idx: int = 0
    num_scales: int = 0


# How integers stand for numbers.
QuantParams = PerChannelQuant | PerTensorQuant | PerTokenDynamicQuant | PerChannelGroupQuant


@dataclass(slots=True)
class TensorValue:
    """A tensor of the graph."""

    datatype: Datatype = Datatype.INVALID
    num_dims: int = 0
    dims: list[int] = field(default_factory=list)
    #: Index of its constant; 0 if it is none.
    constant_buffer_idx: int = 0
    #: Which argument of the delegate it is; 0xFFFFFFFF if none.
    external_id: int = 0
    #: 1 of an input, 2 of an output.
    flags: int = 0
    #: The number by which nodes name it.
    id_out: int = 0
    #: In old payloads only: the quantization of an external input.
    dq_datatype: Datatype = Datatype.INVALID


@dataclass(slots=True)
class QuantizedTensorValue:
    """A quantised tensor of the graph."""

    tensor_value: TensorValue = field(default_factory=TensorValue)
    quant_params: QuantParams = field(kw_only=True)


# The kind of a value.
ValueKind = TensorValue | QuantizedTensorValue


@dataclass(slots=True)
class Value:
    """A value of the graph."""

    xvalue_union: ValueKind


@dataclass(slots=True)
class Unary:
    """A node with one input."""

    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class Binary:
    """A node with two inputs."""

    input1_id: int = 0
    input2_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class Concatenate:
    """Inputs joined along one dimension; those beyond the node's number are 0."""

    axis: int = 0
    input1_id: int = 0
    input2_id: int = 0
    input3_id: int = 0
    input4_id: int = 0
    output_id: int = 0
    flags: int = 0
    input5_id: int = 0


@dataclass(slots=True)
class FullyConnected:
    """A product with a matrix of weights."""

    input1_id: int = 0
    filter_id: int = 0
    #: 0xFFFFFFFF without a bias.
    bias_id: int = 0
    output_id: int = 0
    #: 1 if the filter is [in, out], else it is [out, in].
    flags: int = 0


@dataclass(slots=True)
class Convolution:
    """A convolution of images in NHWC."""

    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    kernel_height: int = 0
    kernel_width: int = 0
    subsampling_height: int = 0
    subsampling_width: int = 0
    dilation_height: int = 0
    dilation_width: int = 0
    group_input_channels: int = 0
    group_output_channels: int = 0
    groups: int = 0
    adjustment_height: int = 0
    adjustment_width: int = 0
    input1_id: int = 0
    filter_id: int = 0
    #: 0xFFFFFFFF without a bias.
    bias_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class Pooling:
    """Pooling of images in NHWC."""

    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    pooling_height: int = 0
    pooling_width: int = 0
    stride_height: int = 0
    stride_width: int = 0
    dilation_height: int = 0
    dilation_width: int = 0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class ArgMaxPooling2d:
    """The maximum of each window of images in NHWC, and where in the window it is."""

    padding_top: int = 0
    padding_right: int = 0
    padding_bottom: int = 0
    padding_left: int = 0
    pooling_height: int = 0
    pooling_width: int = 0
    input_id: int = 0
    output_value_id: int = 0
    output_index_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class StaticTranspose:
    """Dimensions in another order."""

    num_dims: int = 0
    perm: list[int] = field(default_factory=list)
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class StaticReshape:
    """The same elements in other dimensions."""

    num_dims: int = 0
    #: One size may be 0, which stands for the remaining elements.
    new_shape: list[int] = field(default_factory=list)
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class StaticResizeBilinear2D:
    """Images in NHWC at another size."""

    new_height: int = 0
    new_width: int = 0
    input_id: int = 0
    output_id: int = 0
    #: 8 if corners are aligned.
    flags: int = 0


@dataclass(slots=True)
class StaticConstantPad:
    """A constant around a tensor."""

    pre_paddings: list[int] = field(default_factory=list)
    post_paddings: list[int] = field(default_factory=list)
    padding_value: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class StaticSlice:
    """A part of a tensor."""

    num_dims: int = 0
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class LeakyReLU:
    """x, or `negative_slope` * x below 0."""

    negative_slope: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class ELU:
    """x, or `alpha` * (exp(x) - 1) below 0."""

    alpha: float = 0.0
    input_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class ScaledDotProductAttention:
    """Attention; no runtime implements it."""

    query_id: int = 0
    key_id: int = 0
    value_id: int = 0
    scale_id: int = 0
    mask_id: int = 0
    output_id: int = 0
    flags: int = 0


@dataclass(slots=True)
class Add(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Softmax(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Sigmoid(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Clamp(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Conv2d(Convolution):
    """Convolution as a NodeKind."""


@dataclass(slots=True)
class Div(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class AvgPooling2d(Pooling):
    """Pooling as a NodeKind."""


@dataclass(slots=True)
class Minimum(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class DepthwiseConv2d(Convolution):
    """Convolution as a NodeKind."""


@dataclass(slots=True)
class MaxPooling2d(Pooling):
    """Pooling as a NodeKind."""


@dataclass(slots=True)
class Multiply(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Subtract(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Floor(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Convert(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class GlobalAvgPooling2d(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class SquareRoot(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Ceiling(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Hardswish(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Maximum(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Negate(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Square(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Abs(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class PReLU(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Concatenate2(Concatenate):
    """Concatenate as a NodeKind."""


@dataclass(slots=True)
class Concatenate3(Concatenate):
    """Concatenate as a NodeKind."""


@dataclass(slots=True)
class Concatenate4(Concatenate):
    """Concatenate as a NodeKind."""


@dataclass(slots=True)
class BatchMatrixMultiply(Binary):
    """Binary as a NodeKind."""


@dataclass(slots=True)
class Concatenate5(Concatenate):
    """Concatenate as a NodeKind."""


@dataclass(slots=True)
class ConvTranspose2d(Convolution):
    """Convolution as a NodeKind."""


@dataclass(slots=True)
class ReciprocalSquareRoot(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Log(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Gelu(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Tanh(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Exp(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Sin(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Copy(Unary):
    """Unary as a NodeKind."""


@dataclass(slots=True)
class Cos(Unary):
    """Unary as a NodeKind."""


# The operation of a node.
NodeKind = (
    Add
    | FullyConnected
    | Softmax
    | Sigmoid
    | StaticTranspose
    | Clamp
    | Conv2d
    | Div
    | StaticResizeBilinear2D
    | StaticConstantPad
    | AvgPooling2d
    | Minimum
    | DepthwiseConv2d
    | MaxPooling2d
    | Multiply
    | Subtract
    | Floor
    | Convert
    | GlobalAvgPooling2d
    | StaticReshape
    | ArgMaxPooling2d
    | SquareRoot
    | Ceiling
    | Hardswish
    | LeakyReLU
    | Maximum
    | Negate
    | Square
    | ELU
    | Abs
    | PReLU
    | Concatenate2
    | Concatenate3
    | Concatenate4
    | StaticSlice
    | ScaledDotProductAttention
    | BatchMatrixMultiply
    | Concatenate5
    | ConvTranspose2d
    | ReciprocalSquareRoot
    | Log
    | Gelu
    | Tanh
    | Exp
    | Sin
    | Copy
    | Cos
)


@dataclass(slots=True)
class OutputMinMax:
    """The limits of a node's results."""

    output_min: float = 0.0
    output_max: float = 0.0


@dataclass(slots=True)
class Node:
    """A node of the graph."""

    xnode_union: NodeKind
    debug_handle: int = 0
    output_min_max: OutputMinMax | None = None


@dataclass(slots=True)
class Buffer:
    """A constant of old payloads."""

    storage: codec.Buffer = b""


@dataclass(slots=True)
class ConstantDataOffset:
    """Where a constant lies."""

    #: Bytes from the start of the payload's constants; not read if there is a name.
    offset: int = 0
    size: int = 0
    #: The key in the program's named data. If the field is present, even empty, it is used.
    named_key: str | None = None


@dataclass(slots=True)
class Graph:
    """The whole payload."""

    version: str = ""
    xnodes: list[Node] = field(default_factory=list)
    xvalues: list[Value] = field(default_factory=list)
    num_externs: int = 0
    input_ids: list[int] = field(default_factory=list)
    output_ids: list[int] = field(default_factory=list)
    #: Constants of payloads without a header; entry 0 stands for none.
    constant_buffer: list[Buffer] = field(default_factory=list)
    mem_buffer_sizes: list[int] = field(default_factory=list)
    #: Constants of payloads with a header; entry 0 stands for none.
    constant_data: list[ConstantDataOffset] = field(default_factory=list)


_TABLES: dict[type, tuple[codec.Field, ...]] = {
    Graph: (
        codec.Text("version", 0),
        codec.Children("xnodes", 1, Node),
        codec.Children("xvalues", 2, Value),
        codec.Scalar("num_externs", 3, "I", 0),
        codec.Numbers("input_ids", 4, "I"),
        codec.Numbers("output_ids", 5, "I"),
        codec.Children("constant_buffer", 6, Buffer),
        codec.Numbers("mem_buffer_sizes", 7, "I"),
        codec.Children("constant_data", 8, ConstantDataOffset),
    ),
    Node: (
        codec.Union(
            "xnode_union",
            0,
            (
                Add,
                FullyConnected,
                Softmax,
                Sigmoid,
                StaticTranspose,
                Clamp,
                Conv2d,
                Div,
                StaticResizeBilinear2D,
                StaticConstantPad,
                AvgPooling2d,
                Minimum,
                DepthwiseConv2d,
                MaxPooling2d,
                Multiply,
                Subtract,
                Floor,
                Convert,
                GlobalAvgPooling2d,
                StaticReshape,
                ArgMaxPooling2d,
                SquareRoot,
                Ceiling,
                Hardswish,
                LeakyReLU,
                Maximum,
                Negate,
                Square,
                ELU,
                Abs,
                PReLU,
                Concatenate2,
                Concatenate3,
                Concatenate4,
                StaticSlice,
                ScaledDotProductAttention,
                BatchMatrixMultiply,
                Concatenate5,
                ConvTranspose2d,
                ReciprocalSquareRoot,
                Log,
                Gelu,
                Tanh,
                Exp,
                Sin,
                Copy,
                Cos,
            ),
        ),
        codec.Scalar("debug_handle", 2, "I", 0),
        codec.Child("output_min_max", 3, OutputMinMax, optional=True),
    ),
    Value: (
        codec.Union(
            "xvalue_union",
            0,
            (
                TensorValue,
                QuantizedTensorValue,
            ),
        ),
    ),
    Buffer: (codec.Bytes("storage", 0, align=16),),
    ConstantDataOffset: (
        codec.Scalar("offset", 0, "Q", 0),
        codec.Scalar("size", 1, "Q", 0),
        codec.Text("named_key", 2, optional=True),
    ),
    Binary: (
        codec.Scalar("input1_id", 0, "I", 0),
        codec.Scalar("input2_id", 1, "I", 0),
        codec.Scalar("output_id", 2, "I", 0),
        codec.Scalar("flags", 3, "I", 0),
    ),
    FullyConnected: (
        codec.Scalar("input1_id", 0, "I", 0),
        codec.Scalar("filter_id", 1, "I", 0),
        codec.Scalar("bias_id", 2, "I", 0),
        codec.Scalar("output_id", 3, "I", 0),
        codec.Scalar("flags", 4, "I", 0),
    ),
    Unary: (
        codec.Scalar("input_id", 0, "I", 0),
        codec.Scalar("output_id", 1, "I", 0),
        codec.Scalar("flags", 2, "I", 0),
    ),
    StaticTranspose: (
        codec.Scalar("num_dims", 0, "I", 0),
        codec.Numbers("perm", 1, "I"),
        codec.Scalar("input_id", 2, "I", 0),
        codec.Scalar("output_id", 3, "I", 0),
        codec.Scalar("flags", 4, "I", 0),
    ),
    Convolution: (
        codec.Scalar("padding_top", 0, "I", 0),
        codec.Scalar("padding_right", 1, "I", 0),
        codec.Scalar("padding_bottom", 2, "I", 0),
        codec.Scalar("padding_left", 3, "I", 0),
        codec.Scalar("kernel_height", 4, "I", 0),
        codec.Scalar("kernel_width", 5, "I", 0),
        codec.Scalar("subsampling_height", 6, "I", 0),
        codec.Scalar("subsampling_width", 7, "I", 0),
        codec.Scalar("dilation_height", 8, "I", 0),
        codec.Scalar("dilation_width", 9, "I", 0),
        codec.Scalar("group_input_channels", 10, "I", 0),
        codec.Scalar("group_output_channels", 11, "I", 0),
        codec.Scalar("groups", 12, "I", 0),
        codec.Scalar("adjustment_height", 13, "I", 0),
        codec.Scalar("adjustment_width", 14, "I", 0),
        codec.Scalar("input1_id", 15, "I", 0),
        codec.Scalar("filter_id", 16, "I", 0),
        codec.Scalar("bias_id", 17, "I", 0),
        codec.Scalar("output_id", 18, "I", 0),
        codec.Scalar("flags", 19, "I", 0),
    ),
    StaticResizeBilinear2D: (
        codec.Scalar("new_height", 0, "I", 0),
        codec.Scalar("new_width", 1, "I", 0),
        codec.Scalar("input_id", 2, "I", 0),
        codec.Scalar("output_id", 3, "I", 0),
        codec.Scalar("flags", 4, "I", 0),
    ),
    StaticConstantPad: (
        codec.Numbers("pre_paddings", 0, "I"),
        codec.Numbers("post_paddings", 1, "I"),
        codec.Scalar("padding_value", 2, "f", 0.0),
        codec.Scalar("input_id", 3, "I", 0),
        codec.Scalar("output_id", 4, "I", 0),
        codec.Scalar("flags", 5, "I", 0),
    ),
    Pooling: (
        codec.Scalar("padding_top", 0, "I", 0),
        codec.Scalar("padding_right", 1, "I", 0),
        codec.Scalar("padding_bottom", 2, "I", 0),
        codec.Scalar("padding_left", 3, "I", 0),
        codec.Scalar("pooling_height", 4, "I", 0),
        codec.Scalar("pooling_width", 5, "I", 0),
        codec.Scalar("stride_height", 6, "I", 0),
        codec.Scalar("stride_width", 7, "I", 0),
        codec.Scalar("dilation_height", 8, "I", 0),
        codec.Scalar("dilation_width", 9, "I", 0),
        codec.Scalar("input_id", 10, "I", 0),
        codec.Scalar("output_id", 11, "I", 0),
        codec.Scalar("flags", 12, "I", 0),
    ),
    StaticReshape: (
        codec.Scalar("num_dims", 0, "I", 0),
        codec.Numbers("new_shape", 1, "I"),
        codec.Scalar("input_id", 2, "I", 0),
        codec.Scalar("output_id", 3, "I", 0),
        codec.Scalar("flags", 4, "I", 0),
    ),
    ArgMaxPooling2d: (
        codec.Scalar("padding_top", 0, "I", 0),
        codec.Scalar("padding_right", 1, "I", 0),
        codec.Scalar("padding_bottom", 2, "I", 0),
        codec.Scalar("padding_left", 3, "I", 0),
        codec.Scalar("pooling_height", 4, "I", 0),
        codec.Scalar("pooling_width", 5, "I", 0),
        codec.Scalar("input_id", 6, "I", 0),
        codec.Scalar("output_value_id", 7, "I", 0),
        codec.Scalar("output_index_id", 8, "I", 0),
        codec.Scalar("flags", 9, "I", 0),
    ),
    LeakyReLU: (
        codec.Scalar("negative_slope", 0, "f", 0.0),
        codec.Scalar("input_id", 1, "I", 0),
        codec.Scalar("output_id", 2, "I", 0),
        codec.Scalar("flags", 3, "I", 0),
    ),
    ELU: (
        codec.Scalar("alpha", 0, "f", 0.0),
        codec.Scalar("input_id", 1, "I", 0),
        codec.Scalar("output_id", 2, "I", 0),
        codec.Scalar("flags", 3, "I", 0),
    ),
    Concatenate: (
        codec.Scalar("axis", 0, "I", 0),
        codec.Scalar("input1_id", 1, "I", 0),
        codec.Scalar("input2_id", 2, "I", 0),
        codec.Scalar("input3_id", 3, "I", 0),
        codec.Scalar("input4_id", 4, "I", 0),
        codec.Scalar("output_id", 5, "I", 0),
        codec.Scalar("flags", 6, "I", 0),
        codec.Scalar("input5_id", 7, "I", 0),
    ),
    StaticSlice: (
        codec.Scalar("num_dims", 0, "I", 0),
        codec.Numbers("offsets", 1, "I"),
        codec.Numbers("sizes", 2, "I"),
        codec.Scalar("input_id", 3, "I", 0),
        codec.Scalar("output_id", 4, "I", 0),
        codec.Scalar("flags", 5, "I", 0),
    ),
    ScaledDotProductAttention: (
        codec.Scalar("query_id", 0, "I", 0),
        codec.Scalar("key_id", 1, "I", 0),
        codec.Scalar("value_id", 2, "I", 0),
        codec.Scalar("scale_id", 3, "I", 0),
        codec.Scalar("mask_id", 4, "I", 0),
        codec.Scalar("output_id", 5, "I", 0),
        codec.Scalar("flags", 6, "I", 0),
    ),
    OutputMinMax: (
        codec.Scalar("output_min", 0, "f", 0.0),
        codec.Scalar("output_max", 1, "f", 0.0),
    ),
    TensorValue: (
        codec.Scalar("datatype", 0, "h", Datatype.INVALID, Datatype),
        codec.Scalar("num_dims", 1, "I", 0),
        codec.Numbers("dims", 2, "I"),
        codec.Scalar("constant_buffer_idx", 3, "I", 0),
        codec.Scalar("external_id", 4, "I", 0),
        codec.Scalar("flags", 5, "I", 0),
        codec.Scalar("id_out", 6, "I", 0),
        codec.Scalar("dq_datatype", 7, "h", Datatype.INVALID, Datatype),
    ),
    QuantizedTensorValue: (
        codec.Child("tensor_value", 0, TensorValue),
        codec.Union(
            "quant_params",
            1,
            (
                PerChannelQuant,
                PerTensorQuant,
                PerTokenDynamicQuant,
                PerChannelGroupQuant,
            ),
        ),
    ),
    PerChannelQuant: (
        codec.Numbers("scale", 0, "f"),
        codec.Scalar("channel_dim", 1, "i", 0),
        codec.Scalar("scale_buffer_idx", 2, "I", 0),
        codec.Scalar("num_scales", 3, "I", 0),
    ),
    PerTensorQuant: (
        codec.Scalar("scale", 0, "f", 0.0),
        codec.Scalar("zero_point", 1, "i", 0),
    ),
    PerTokenDynamicQuant: (codec.Scalar("num_nonbatch_dims", 0, "i", 0),),
    PerChannelGroupQuant: (
        codec.Numbers("scale", 0, "f"),
        codec.Scalar("channel_dim", 1, "i", 0),
        codec.Scalar("group_size", 2, "i", 0),
        codec.Numbers("scale_bf16", 3, "H"),
        codec.Scalar("scale_buffer_idx", 4, "I", 0),
        codec.Scalar("num_scales", 5, "I", 0),
    ),
}
_member: type
for _member in (Add, Div, Minimum, Multiply, Subtract, Maximum, PReLU, BatchMatrixMultiply):
    _TABLES[_member] = _TABLES[Binary]
for _member in (
    Softmax,
    Sigmoid,
    Clamp,
    Floor,
    Convert,
    GlobalAvgPooling2d,
    SquareRoot,
    Ceiling,
    Hardswish,
    Negate,
    Square,
    Abs,
    ReciprocalSquareRoot,
    Log,
    Gelu,
    Tanh,
    Exp,
    Sin,
    Copy,
    Cos,
):
    _TABLES[_member] = _TABLES[Unary]
for _member in (Conv2d, DepthwiseConv2d, ConvTranspose2d):
    _TABLES[_member] = _TABLES[Convolution]
for _member in (AvgPooling2d, MaxPooling2d):
    _TABLES[_member] = _TABLES[Pooling]
for _member in (Concatenate2, Concatenate3, Concatenate4, Concatenate5):
    _TABLES[_member] = _TABLES[Concatenate]

XNNPACK = codec.Format(Graph, b"XN01", _TABLES, Code.DELEGATE_INVALID_COMPATIBILITY)


def pack(xnnpack: Graph, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `xnnpack`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(XNNPACK, xnnpack, alignments)


def unpack(data: codec.Buffer) -> Graph:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    xnnpack = codec.unpack(XNNPACK, data)
    assert isinstance(xnnpack, Graph)
    return xnnpack
