"""The payload of the cpu backend: a fused graph of one delegate, ready to run.

Its constants lie in the program's named data, packed as the kernels read them.

Made from schema/cpu_engine.fbs by `python -m codegen.schema`; edit that file instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from rushlight.errors import Code
from rushlight.schema import codec, versions
from rushlight.schema.common import DataSegment as DataSegment
from rushlight.schema.common import ScalarType as ScalarType


class Version(IntEnum):
    """The changes of each version, apart from tables, fields and members that have a version of
    their own.
    """

    FIRST = 1
    DYNAMIC = 2
    INTEGERS = 3
    RESIDUALS = 4
    HALVES = 5
    RECURRENT = 6
    CACHED_ATTENTION = 7
    ROW_GROUPS = 8
    ADAPTERS = 9
    KERNELS = 10


class Place(IntEnum):
    """Where the elements of a value lie."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2
    CONSTANT = 3


class ExpressionKind(IntEnum):
    """How a size, stride or offset follows from the inputs' sizes."""

    CONSTANT = 0
    INPUT_SIZE = 1
    ADD = 2
    MULTIPLY = 3
    FLOOR_DIVIDE = 4
    MODULO = 5
    MAXIMUM = 6
    MINIMUM = 7


class Limit(IntEnum):
    """The limits of a payload.

    The compiler does not exceed them, and a reader refuses what does.
    """

    RANK = 8
    NODE_VALUES = 16
    ARGUMENTS = 65536
    QUANTIZED_TERMS = 65793
    WINDOW = 1048576
    ELEMENTS = 1099511627776
    CACHED_WIDTH = 1024
    ADAPTER_RANK = 256
    KERNEL_ARGUMENTS = 64
    KERNEL_TEXT = 255


class TileLimit(IntEnum):
    """The limits of a tile program."""

    RANK = 4
    REGISTERS = 8
    OPERANDS = 16
    INSTRUCTIONS = 256


class TileOp(IntEnum):
    """The operation of an instruction of a tile program."""

    LOAD = 0
    STORE = 1
    CONSTANT = 2
    ADD = 3
    SUB = 4
    MUL = 5
    DIV = 6
    MIN = 7
    MAX = 8
    POW = 9
    FMOD = 10
    REMAINDER = 11
    MUL_ADD = 12
    EQUAL = 13
    NOT_EQUAL = 14
    LESS = 15
    LESS_EQUAL = 16
    GREATER = 17
    GREATER_EQUAL = 18
    AND = 19
    OR = 20
    NOT = 21
    WHERE = 22
    NEG = 23
    ABS = 24
    SQUARE = 25
    SQRT = 26
    RSQRT = 27
    RECIPROCAL = 28
    EXP = 29
    EXP2 = 30
    EXPM1 = 31
    LOG = 32
    LOG1P = 33
    SIN = 34
    COS = 35
    TANH = 36
    SIGMOID = 37
    ERF = 38
    GELU = 39
    GELU_TANH = 40
    SILU = 41
    MISH = 42
    SOFTPLUS = 43
    RELU = 44
    HARDSWISH = 45
    HARDSIGMOID = 46
    ELU = 47
    FLOOR = 48
    CEIL = 49
    ROUND = 50
    TRUNC = 51
    SIGN = 52
    ADD_VALUE = 53
    MUL_VALUE = 54
    MIN_VALUE = 55
    MAX_VALUE = 56


class ConvolutionKind(IntEnum):
    """How a convolution is computed, and how its weights are packed."""

    DENSE = 0
    DEPTHWISE = 1
    TRANSPOSED = 2
    WINOGRAD = 3


class ReductionKind(IntEnum):
    """The function of a reduction."""

    SUM = 0
    MEAN = 1
    MAX = 2
    MIN = 3


class QuantizedBinaryKind(IntEnum):
    """The function of an elementwise operator of two integer operands."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2


class RecurrentCell(IntEnum):
    """The function that a recurrent layer computes in each time step."""

    LSTM = 0
    GRU = 1
    RNN_TANH = 2
    RNN_RELU = 3


class ArgumentKind(IntEnum):
    """What an argument of a kernel's call is."""

    NONE = 0
    TENSOR = 1
    RESULT = 2
    TENSORS = 3
    OPTIONAL_TENSORS = 4
    RESULTS = 5
    INTEGER = 6
    BOOLEAN = 7
    FLOAT = 8
    TEXT = 9
    INTEGERS = 10
    BOOLEANS = 11
    FLOATS = 12


@dataclass(slots=True)
class Expression:
    """Division and modulo round as Python's // and % do. Since version 2."""

    kind: ExpressionKind = ExpressionKind.CONSTANT
    #: `a` and `b` are indices of earlier expressions. For CONSTANT, a is the value. For INPUT_SIZE,
    #: a is the input and b its dimension, or -1 if the input itself is the integer.
    a: int = 0
    b: int = 0


@dataclass(slots=True)
class Value:
    """A view of memory.

    The order of its dimensions is the operator's; the strides say how they lie in memory. Sizes,
    strides and offset are those at the upper bounds of the inputs' sizes.
    """

    dtype: ScalarType = ScalarType.FLOAT
    #: Elements of each dimension.
    sizes: list[int] = field(default_factory=list)
    #: The distance in elements from one index to the next, for each dimension.
    strides: list[int] = field(default_factory=list)
    place: Place = Place.SCRATCH
    #: Which input, output or constant.
    index: int = 0
    #: Bytes from the start of the input, output, constant or scratch.
    offset: int = 0
    #: An expression for each dimension, or -1 if the number above holds for all inputs. Empty if
    #: all do. The offset's expression is in bytes. Since version 2.
    dynamic_sizes: list[int] | None = None
    #: Since version 2.
    dynamic_strides: list[int] | None = None
    #: Since version 2.
    dynamic_offset: int = -1


@dataclass(slots=True)
class Constant:
    """Bytes in the program's named data, aligned to 64."""

    key: str = ""
    #: Bytes.
    size: int = 0


@dataclass(slots=True)
class TileProgram:
    """Elementwise instructions, which run on one tile at a time: see
    cpp/engine/kernels/rows/tile.h.
    """

    #: Three words for each instruction: op (a TileOp), out, a, b (one byte each, the lowest first);
    #: then c; then value, as the bits of a float32.
    code: list[int] = field(default_factory=list)
    #: The values to which LOAD and STORE refer by index.
    operands: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Epilogue:
    """The epilogue of a product or convolution, which runs while the results are in cache."""

    clamped: bool = False
    low: float = 0.0
    high: float = 0.0
    #: Runs over the rows and columns of the result, which is one of its operands.
    program: TileProgram | None = None
    #: A value [rows, columns] that is added before the clamp, if `added` is set.
    residual: int = 0
    added: bool = False


@dataclass(slots=True)
class Product:
    """A matrix product with packed weights.

    Inputs: a, panels, bias, and since version 5 scales, if the panels are int8, or uint8 with 4
    bits, as in a DynamicProduct, with groups or without. Since version 5 panels may also be
    float16.
    """

    epilogue: Epilogue | None = None


@dataclass(slots=True)
class BatchProduct:
    """Products of matrices that are both computed, in batches. Inputs: a, b."""


@dataclass(slots=True)
class Convolution:
    """A convolution over two dimensions. Inputs: images [N, C, H, W], weights, bias."""

    kind: ConvolutionKind = ConvolutionKind.DENSE
    kernel: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    #: Top, left, bottom, right.
    padding: list[int] = field(default_factory=list)
    dilation: list[int] = field(default_factory=list)
    groups: int = 0
    epilogue: Epilogue | None = None


@dataclass(slots=True)
class Pooling:
    """Pooling over two dimensions. Inputs: images [N, C, H, W]."""

    average: bool = False
    kernel: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    #: Top, left, bottom, right.
    padding: list[int] = field(default_factory=list)
    dilation: list[int] = field(default_factory=list)
    count_padding: bool = False
    #: The divisor of averages; 0 if they divide by the number of elements.
    divisor: int = 0


@dataclass(slots=True)
class Elementwise:
    """Elementwise operators.

    The program has the operands; the operand of its first STORE has the sizes of all.
    """

    program: TileProgram = field(default_factory=TileProgram)


@dataclass(slots=True)
class Norm:
    """Layer norm or RMS norm of dense rows. Inputs: x, scale, shift."""

    rms: bool = False
    epsilon: float = 0.0


@dataclass(slots=True)
class GroupNorm:
    """Group norm. Inputs: x, scale, shift."""

    groups: int = 0
    epsilon: float = 0.0


@dataclass(slots=True)
class Softmax:
    """Softmax over one dimension."""

    dim: int = 0
    log: bool = False


@dataclass(slots=True)
class Reduction:
    """A reduction over neighbouring dimensions."""

    kind: ReductionKind = ReductionKind.SUM
    #: Dimensions first..last-1 are reduced.
    first: int = 0
    last: int = 0


@dataclass(slots=True)
class Gather:
    """Rows of a table.

    Inputs: table, indices, and since version 7 scales, if the table is panels of integers as in a
    Product. The result has the table's dtype or, since version 5 for tables in half types and since
    version 7 for integers, float32.
    """

    #: The number of columns of a table in panels, of which columns are taken. 0 for a table [rows,
    #: width].
    columns: int = 0


@dataclass(slots=True)
class Copy:
    """A copy between memory of different strides."""


@dataclass(slots=True)
class Attention:
    """Scaled dot product attention. Inputs: q, k, v [batch, heads, length, width], and a mask."""

    scale: float = 0.0
    causal: bool = False


@dataclass(slots=True)
class Convert:
    """Converts float32 to uint8 or back, number = scale * (integer - zero_point); or int8 to uint8
    or back, with zero points 128 apart, so that the numbers stay the same.

    Since version 3.
    """

    scale: float = 1.0
    zero_point: int = 0


@dataclass(slots=True)
class QuantizeRows:
    """Quantizes each row of float32 to uint8 with its own scale and zero point.

    Inputs: x. Outputs: the integers, and float32 [rows, 2]: scale and zero point. With groups, the
    integers are int8 from -127 to 127 without zero points; then the outputs are these, float32
    [rows, groups]: the scales, and int32 [rows, groups]: the sums of each group's integers. Since
    version 3.
    """

    #: Neighbours in a row that share a scale, 16 or 32; 0: all of them. Since version 8.
    group_size: int = 0


@dataclass(slots=True)
class Requantize:
    """From a sum to uint8: round_half_even(sum * multiplier) + zero_point, clamped.

    Since version 3.
    """

    zero_point: int = 0
    low: int = 0
    high: int = 255


@dataclass(slots=True)
class QuantizedBinary:
    """An elementwise operator of uint8 a and b, which are broadcast. Since version 3."""

    kind: QuantizedBinaryKind = QuantizedBinaryKind.ADD
    a_scale: float = 0.0
    a_zero_point: int = 0
    b_scale: float = 0.0
    b_zero_point: int = 0
    scale: float = 0.0
    requantize: Requantize = field(default_factory=Requantize)


@dataclass(slots=True)
class QuantizedResidual:
    """A value that is added to uint8 results before they are stored. Since version 4."""

    #: A value [rows, columns] of uint8; it may lie where the result does.
    value: int = 0
    #: ADD or SUBTRACT; a is the requantized result, b the value.
    sum: QuantizedBinary = field(default_factory=QuantizedBinary)


@dataclass(slots=True)
class QuantizedProduct:
    """A matrix product of uint8 rows with packed int8 weights.

    Inputs: a, panels, start (int32: the start of each column's sum), multipliers (float32, one for
    each column). The result is uint8, or float32: sum * multiplier, then the epilogue. Since
    version 3.
    """

    requantize: Requantize | None = None
    epilogue: Epilogue | None = None
    #: Since version 4.
    residual: QuantizedResidual | None = None


@dataclass(slots=True)
class DynamicProduct:
    """A matrix product of rows quantised at run time with packed weights of 8 or 4 bits.

    Inputs: a (uint8), rows (float32 [rows, 2]: scale and zero point), panels (int8, or uint8 of 4
    bits), scales, shares, bias (float32; may be left out). Scales are float32, one for each column,
    and shares int32: for each column the sum of its weights. With groups (of 4 bits), scales are
    float32, bfloat16 or, since version 8, float16 [panels, groups, 16], and shares float32: the sum
    of scale * weight. Arrays with one element for each column are filled up with zeros to whole
    panels. The result is float32.  If the rows are quantised in groups, weights of 8 bits may have
    groups, too, and there are no shares: inputs are the three outputs of QuantizeRows, panels,
    scales, bias. Since version 3.
    """

    bits: int = 8
    #: Terms that share a scale, a multiple of 8 that divides their number; 0: all of them.
    group_size: int = 0
    epilogue: Epilogue | None = None
    #: Terms of a row that share a scale, 16 or 32, which divide the weights' groups; 0: all of
    #: them. Since version 8.
    row_group_size: int = 0


@dataclass(slots=True)
class QuantizedConvolution:
    """A convolution of uint8 images.

    Inputs: images, weights, start, multipliers, as for a product. Pixels outside the image are
    `padding_value`. DENSE or DEPTHWISE. Since version 3.
    """

    kind: ConvolutionKind = ConvolutionKind.DENSE
    kernel: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    #: Top, left, bottom, right.
    padding: list[int] = field(default_factory=list)
    dilation: list[int] = field(default_factory=list)
    groups: int = 0
    padding_value: int = 0
    requantize: Requantize | None = None
    epilogue: Epilogue | None = None
    #: Since version 4.
    residual: QuantizedResidual | None = None


@dataclass(slots=True)
class Lookup:
    """Replaces each uint8 by its entry in a table of 256 bytes.

    Inputs: x, table. Since version 3.
    """


@dataclass(slots=True)
class QuantizedPooling:
    """Pooling of uint8 images.

    Inputs: images [N, C, H, W]. Averages are requantized, maxima are not. Since version 3.
    """

    average: bool = False
    kernel: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    #: Top, left, bottom, right.
    padding: list[int] = field(default_factory=list)
    dilation: list[int] = field(default_factory=list)
    count_padding: bool = False
    #: The divisor of averages; 0 if they divide by the number of elements.
    divisor: int = 0
    in_zero_point: int = 0
    #: The input's scale divided by the result's.
    multiplier: float = 1.0
    requantize: Requantize | None = None


@dataclass(slots=True)
class Recurrent:
    """Recurrent layers over a sequence, one above the other, as torch has them.

    Inputs: x [length, batch, width], weights, bias, first hidden state [layers * directions, batch,
    outputs], first cell state [layers * directions, batch, units] (LSTM), scales and shares (of
    int8 weights). Only x and weights are needed; states that are left out are zeros. Outputs:
    [length, batch, directions * outputs], and the last states (may be left out), which lie as the
    first ones.  Weights are one vector with the matrices of each layer and direction, forward
    first: of the input [width, gates * units], of the hidden state [outputs, gates * units] and, if
    outputs < units, of the projection [units, outputs]. They are packed as of a Product (float32,
    bfloat16, float16) or of a DynamicProduct (int8; with a scale and a share for each column of
    each matrix, in the same order). Gates are in torch's order. Bias is one vector, too: for each
    layer and direction the bias of all gates, filled up with zeros to whole panels, and for a GRU
    then the hidden state's bias of the new gate, filled up likewise. Since version 6.
    """

    cell: RecurrentCell = RecurrentCell.LSTM
    layers: int = 0
    bidirectional: bool = False
    units: int = 0
    outputs: int = 0


@dataclass(slots=True)
class CachedAttention:
    """Attention of tokens of many sequences over the cache of a language model's runner, in which
    their keys and values are stored first.

    Inputs: query [tokens, heads, width], key [tokens, key heads, width], value [tokens, key heads,
    value width], positions and sequences (int64 [tokens]). Token i stands at positions[i] of
    sequence sequences[i]; tokens of one sequence are neighbours, at consecutive positions. The
    result is [tokens, heads, value width]. Since version 7.
    """

    layer: int = 0
    scale: float = 0.0
    #: The positions that a token sees, its own included; 0: all before it.
    window: int = 0
    #: Scores become softcap * tanh(score / softcap); 0: they stay.
    softcap: float = 0.0


@dataclass(slots=True)
class Adapter:
    """What adapters (LoRA) add to the results of linear layers of the same rows.

    Inputs: their results side by side [tokens, sum of widths], the rows [tokens, in], and sequences
    (int64 [tokens]). Token i is computed with the adapter of sequences[i], which a language model's
    runner lends; without one its row stays. The result may lie where the first input does. Since
    version 9.
    """

    #: The number of each layer.
    sites: list[int] = field(default_factory=list)
    #: The columns of each layer's result.
    widths: list[int] = field(default_factory=list)
    #: The greatest rank of an adapter.
    rank: int = 0


@dataclass(slots=True)
class KernelArgument:
    """An argument of a kernel's call. Since version 10."""

    kind: ArgumentKind = ArgumentKind.NONE
    count: int = 0
    integers: list[int] | None = None
    #: An expression for each of the integers, or -1 if the number above holds for all inputs. Empty
    #: if all do.
    expressions: list[int] | None = None
    floats: list[float] | None = None
    text: str | None = None


@dataclass(slots=True)
class KernelCall:
    """A call of a kernel of the user's own, which the runtime is given.

    Inputs and outputs are dense in their dim orders. What a kernel must fit is also in the
    program's named data: the schema of its operator. Since version 10.
    """

    #: The out-variant, as in `acme::snake.out`.
    name: str = ""
    arguments: list[KernelArgument] = field(default_factory=list)
    #: The dimensions of each input and then each output that is not left out, the outermost first.
    dim_orders: list[int] = field(default_factory=list)


# The operation of a node.
Operation = (
    Product
    | BatchProduct
    | Convolution
    | Pooling
    | Elementwise
    | Norm
    | GroupNorm
    | Softmax
    | Reduction
    | Gather
    | Copy
    | Attention
    | Convert
    | QuantizeRows
    | QuantizedProduct
    | DynamicProduct
    | QuantizedConvolution
    | QuantizedBinary
    | Lookup
    | QuantizedPooling
    | Recurrent
    | CachedAttention
    | Adapter
    | KernelCall
)


@dataclass(slots=True)
class Node:
    """One fused operator. Errors and events name it by its index."""

    operation: Operation
    #: Values; -1 for one that is left out.
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """The whole payload."""

    version: int = 0
    values: list[Value] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    n_inputs: int = 0
    n_outputs: int = 0
    #: Bytes of the memory that values in scratch share.
    scratch_size: int = 0
    #: Sizes that follow from the inputs' sizes. Without any, all sizes are fixed. Since version 2.
    expressions: list[Expression] | None = None
    #: For each input, then each output: the value that has its sizes (those at the upper bounds),
    #: or -1 for a number. Empty if there are no expressions. Since version 2.
    arguments: list[int] | None = None


_TABLES: Mapping[type, tuple[codec.Field, ...]] = {
    Graph: (
        codec.Scalar("version", 0, "I", 0),
        codec.Children("values", 1, Value),
        codec.Children("constants", 2, Constant),
        codec.Children("nodes", 3, Node),
        codec.Scalar("n_inputs", 4, "I", 0),
        codec.Scalar("n_outputs", 5, "I", 0),
        codec.Scalar("scratch_size", 6, "Q", 0),
        codec.Children("expressions", 7, Expression, optional=True),
        codec.Numbers("arguments", 8, "i", optional=True),
    ),
    Value: (
        codec.Scalar("dtype", 0, "b", ScalarType.FLOAT, ScalarType),
        codec.Numbers("sizes", 1, "q"),
        codec.Numbers("strides", 2, "q"),
        codec.Scalar("place", 3, "B", Place.SCRATCH, Place),
        codec.Scalar("index", 4, "I", 0),
        codec.Scalar("offset", 5, "Q", 0),
        codec.Numbers("dynamic_sizes", 6, "i", optional=True),
        codec.Numbers("dynamic_strides", 7, "i", optional=True),
        codec.Scalar("dynamic_offset", 8, "i", -1),
    ),
    Constant: (
        codec.Text("key", 0),
        codec.Scalar("size", 1, "Q", 0),
    ),
    Node: (
        codec.Union(
            "operation",
            0,
            (
                Product,
                BatchProduct,
                Convolution,
                Pooling,
                Elementwise,
                Norm,
                GroupNorm,
                Softmax,
                Reduction,
                Gather,
                Copy,
                Attention,
                Convert,
                QuantizeRows,
                QuantizedProduct,
                DynamicProduct,
                QuantizedConvolution,
                QuantizedBinary,
                Lookup,
                QuantizedPooling,
                Recurrent,
                CachedAttention,
                Adapter,
                KernelCall,
            ),
        ),
        codec.Numbers("inputs", 2, "i"),
        codec.Numbers("outputs", 3, "i"),
    ),
    Expression: (
        codec.Scalar("kind", 0, "B", ExpressionKind.CONSTANT, ExpressionKind),
        codec.Scalar("a", 1, "q", 0),
        codec.Scalar("b", 2, "q", 0),
    ),
    Product: (codec.Child("epilogue", 0, Epilogue, optional=True),),
    BatchProduct: (),
    Convolution: (
        codec.Scalar("kind", 0, "B", ConvolutionKind.DENSE, ConvolutionKind),
        codec.Numbers("kernel", 1, "q"),
        codec.Numbers("stride", 2, "q"),
        codec.Numbers("padding", 3, "q"),
        codec.Numbers("dilation", 4, "q"),
        codec.Scalar("groups", 5, "q", 0),
        codec.Child("epilogue", 6, Epilogue, optional=True),
    ),
    Pooling: (
        codec.Scalar("average", 0, "?", False),
        codec.Numbers("kernel", 1, "q"),
        codec.Numbers("stride", 2, "q"),
        codec.Numbers("padding", 3, "q"),
        codec.Numbers("dilation", 4, "q"),
        codec.Scalar("count_padding", 5, "?", False),
        codec.Scalar("divisor", 6, "q", 0),
    ),
    Elementwise: (codec.Child("program", 0, TileProgram),),
    Norm: (
        codec.Scalar("rms", 0, "?", False),
        codec.Scalar("epsilon", 1, "f", 0.0),
    ),
    GroupNorm: (
        codec.Scalar("groups", 0, "q", 0),
        codec.Scalar("epsilon", 1, "f", 0.0),
    ),
    Softmax: (
        codec.Scalar("dim", 0, "I", 0),
        codec.Scalar("log", 1, "?", False),
    ),
    Reduction: (
        codec.Scalar("kind", 0, "B", ReductionKind.SUM, ReductionKind),
        codec.Scalar("first", 1, "I", 0),
        codec.Scalar("last", 2, "I", 0),
    ),
    Gather: (codec.Scalar("columns", 0, "q", 0),),
    Copy: (),
    Attention: (
        codec.Scalar("scale", 0, "f", 0.0),
        codec.Scalar("causal", 1, "?", False),
    ),
    Convert: (
        codec.Scalar("scale", 0, "f", 1.0),
        codec.Scalar("zero_point", 1, "i", 0),
    ),
    QuantizeRows: (codec.Scalar("group_size", 0, "q", 0),),
    QuantizedProduct: (
        codec.Child("requantize", 0, Requantize, optional=True),
        codec.Child("epilogue", 1, Epilogue, optional=True),
        codec.Child("residual", 2, QuantizedResidual, optional=True),
    ),
    DynamicProduct: (
        codec.Scalar("bits", 0, "B", 8),
        codec.Scalar("group_size", 1, "q", 0),
        codec.Child("epilogue", 2, Epilogue, optional=True),
        codec.Scalar("row_group_size", 3, "q", 0),
    ),
    QuantizedConvolution: (
        codec.Scalar("kind", 0, "B", ConvolutionKind.DENSE, ConvolutionKind),
        codec.Numbers("kernel", 1, "q"),
        codec.Numbers("stride", 2, "q"),
        codec.Numbers("padding", 3, "q"),
        codec.Numbers("dilation", 4, "q"),
        codec.Scalar("groups", 5, "q", 0),
        codec.Scalar("padding_value", 6, "B", 0),
        codec.Child("requantize", 7, Requantize, optional=True),
        codec.Child("epilogue", 8, Epilogue, optional=True),
        codec.Child("residual", 9, QuantizedResidual, optional=True),
    ),
    QuantizedBinary: (
        codec.Scalar("kind", 0, "B", QuantizedBinaryKind.ADD, QuantizedBinaryKind),
        codec.Scalar("a_scale", 1, "f", 0.0),
        codec.Scalar("a_zero_point", 2, "i", 0),
        codec.Scalar("b_scale", 3, "f", 0.0),
        codec.Scalar("b_zero_point", 4, "i", 0),
        codec.Scalar("scale", 5, "f", 0.0),
        codec.Child("requantize", 6, Requantize),
    ),
    Lookup: (),
    QuantizedPooling: (
        codec.Scalar("average", 0, "?", False),
        codec.Numbers("kernel", 1, "q"),
        codec.Numbers("stride", 2, "q"),
        codec.Numbers("padding", 3, "q"),
        codec.Numbers("dilation", 4, "q"),
        codec.Scalar("count_padding", 5, "?", False),
        codec.Scalar("divisor", 6, "q", 0),
        codec.Scalar("in_zero_point", 7, "i", 0),
        codec.Scalar("multiplier", 8, "f", 1.0),
        codec.Child("requantize", 9, Requantize, optional=True),
    ),
    Recurrent: (
        codec.Scalar("cell", 0, "B", RecurrentCell.LSTM, RecurrentCell),
        codec.Scalar("layers", 1, "I", 0),
        codec.Scalar("bidirectional", 2, "?", False),
        codec.Scalar("units", 3, "q", 0),
        codec.Scalar("outputs", 4, "q", 0),
    ),
    CachedAttention: (
        codec.Scalar("layer", 0, "I", 0),
        codec.Scalar("scale", 1, "f", 0.0),
        codec.Scalar("window", 2, "q", 0),
        codec.Scalar("softcap", 3, "f", 0.0),
    ),
    Adapter: (
        codec.Numbers("sites", 0, "q"),
        codec.Numbers("widths", 1, "q"),
        codec.Scalar("rank", 2, "I", 0),
    ),
    KernelCall: (
        codec.Text("name", 0),
        codec.Children("arguments", 1, KernelArgument),
        codec.Numbers("dim_orders", 2, "B"),
    ),
    Epilogue: (
        codec.Scalar("clamped", 0, "?", False),
        codec.Scalar("low", 1, "f", 0.0),
        codec.Scalar("high", 2, "f", 0.0),
        codec.Child("program", 3, TileProgram, optional=True),
        codec.Scalar("residual", 4, "I", 0),
        codec.Scalar("added", 5, "?", False),
    ),
    TileProgram: (
        codec.Numbers("code", 0, "I"),
        codec.Numbers("operands", 1, "I"),
    ),
    Requantize: (
        codec.Scalar("zero_point", 0, "i", 0),
        codec.Scalar("low", 1, "i", 0),
        codec.Scalar("high", 2, "i", 255),
    ),
    QuantizedResidual: (
        codec.Scalar("value", 0, "I", 0),
        codec.Child("sum", 1, QuantizedBinary),
    ),
    KernelArgument: (
        codec.Scalar("kind", 0, "B", ArgumentKind.NONE, ArgumentKind),
        codec.Scalar("count", 1, "I", 0),
        codec.Numbers("integers", 2, "q", optional=True),
        codec.Numbers("expressions", 3, "i", optional=True),
        codec.Numbers("floats", 4, "d", optional=True),
        codec.Text("text", 5, optional=True),
    ),
}

_SINCE = {
    (ConvolutionKind, "WINOGRAD"): 2,
    (Expression, ""): 2,
    (Value, "dynamic_sizes"): 2,
    (Value, "dynamic_strides"): 2,
    (Value, "dynamic_offset"): 2,
    (Convert, ""): 3,
    (QuantizeRows, ""): 3,
    (QuantizeRows, "group_size"): 8,
    (Requantize, ""): 3,
    (QuantizedBinary, ""): 3,
    (QuantizedResidual, ""): 4,
    (QuantizedProduct, ""): 3,
    (QuantizedProduct, "residual"): 4,
    (DynamicProduct, ""): 3,
    (DynamicProduct, "row_group_size"): 8,
    (QuantizedConvolution, ""): 3,
    (QuantizedConvolution, "residual"): 4,
    (Lookup, ""): 3,
    (QuantizedPooling, ""): 3,
    (Recurrent, ""): 6,
    (CachedAttention, ""): 7,
    (Adapter, ""): 9,
    (KernelArgument, ""): 10,
    (KernelCall, ""): 10,
    (Graph, "expressions"): 2,
    (Graph, "arguments"): 2,
}

CPU_ENGINE = codec.Format(Graph, b"RC01", _TABLES, Code.DELEGATE_INVALID_COMPATIBILITY, _SINCE)


def pack(cpu_engine: Graph, alignments: Mapping[type, int] | None = None) -> bytes:
    """The flatbuffer of `cpu_engine`; see :func:`rushlight.schema.codec.pack`."""
    return codec.pack(CPU_ENGINE, cpu_engine, alignments)


def unpack(data: codec.Buffer) -> Graph:
    """The objects in `data`; see :func:`rushlight.schema.codec.unpack`."""
    cpu_engine = codec.unpack(CPU_ENGINE, data)
    assert isinstance(cpu_engine, Graph)
    return cpu_engine


def least_version(cpu_engine: Graph) -> int:
    """The least version that has all fields which `cpu_engine` uses."""
    return versions.least_version(CPU_ENGINE, cpu_engine)
