// The payload of the cpu backend: a fused graph of one delegate, ready to run. Its constants lie in
// the program's named data, packed as the kernels read them.
//
// Made from schema/cpu_engine.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/common_fb.h"
#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {
namespace cpu_engine {

// The changes of each version, apart from tables, fields and members that have a version of their
// own.
enum class Version : uint32_t {
  FIRST = 1,
  DYNAMIC = 2,
  INTEGERS = 3,
  RESIDUALS = 4,
  HALVES = 5,
  RECURRENT = 6,
  CACHED_ATTENTION = 7,
  ROW_GROUPS = 8,
  ADAPTERS = 9,
  KERNELS = 10,
};

// Where the elements of a value lie.
enum class Place : uint8_t {
  INPUT = 0,
  OUTPUT = 1,
  SCRATCH = 2,
  CONSTANT = 3,
};

// How a size, stride or offset follows from the inputs' sizes.
enum class ExpressionKind : uint8_t {
  CONSTANT = 0,
  INPUT_SIZE = 1,
  ADD = 2,
  MULTIPLY = 3,
  FLOOR_DIVIDE = 4,
  MODULO = 5,
  MAXIMUM = 6,
  MINIMUM = 7,
};

// The limits of a payload. The compiler does not exceed them, and a reader refuses what does.
enum class Limit : uint64_t {
  RANK = 8,
  NODE_VALUES = 16,
  ARGUMENTS = 65536,
  QUANTIZED_TERMS = 65793,
  WINDOW = 1048576,
  ELEMENTS = 1099511627776,
  CACHED_WIDTH = 1024,
  ADAPTER_RANK = 256,
  KERNEL_ARGUMENTS = 64,
  KERNEL_TEXT = 255,
};

// The limits of a tile program.
enum class TileLimit : uint32_t {
  RANK = 4,
  REGISTERS = 8,
  OPERANDS = 16,
  INSTRUCTIONS = 256,
};

// The operation of an instruction of a tile program.
enum class TileOp : uint8_t {
  LOAD = 0,
  STORE = 1,
  CONSTANT = 2,
  ADD = 3,
  SUB = 4,
  MUL = 5,
  DIV = 6,
  MIN = 7,
  MAX = 8,
  POW = 9,
  FMOD = 10,
  REMAINDER = 11,
  MUL_ADD = 12,
  EQUAL = 13,
  NOT_EQUAL = 14,
  LESS = 15,
  LESS_EQUAL = 16,
  GREATER = 17,
  GREATER_EQUAL = 18,
  AND = 19,
  OR = 20,
  NOT = 21,
  WHERE = 22,
  NEG = 23,
  ABS = 24,
  SQUARE = 25,
  SQRT = 26,
  RSQRT = 27,
  RECIPROCAL = 28,
  EXP = 29,
  EXP2 = 30,
  EXPM1 = 31,
  LOG = 32,
  LOG1P = 33,
  SIN = 34,
  COS = 35,
  TANH = 36,
  SIGMOID = 37,
  ERF = 38,
  GELU = 39,
  GELU_TANH = 40,
  SILU = 41,
  MISH = 42,
  SOFTPLUS = 43,
  RELU = 44,
  HARDSWISH = 45,
  HARDSIGMOID = 46,
  ELU = 47,
  FLOOR = 48,
  CEIL = 49,
  ROUND = 50,
  TRUNC = 51,
  SIGN = 52,
  ADD_VALUE = 53,
  MUL_VALUE = 54,
  MIN_VALUE = 55,
  MAX_VALUE = 56,
};

// How a convolution is computed, and how its weights are packed.
enum class ConvolutionKind : uint8_t {
  DENSE = 0,
  DEPTHWISE = 1,
  TRANSPOSED = 2,
  WINOGRAD = 3,
};

// The function of a reduction.
enum class ReductionKind : uint8_t {
  SUM = 0,
  MEAN = 1,
  MAX = 2,
  MIN = 3,
};

// The function of an elementwise operator of two integer operands.
enum class QuantizedBinaryKind : uint8_t {
  ADD = 0,
  SUBTRACT = 1,
  MULTIPLY = 2,
};

// The function that a recurrent layer computes in each time step.
enum class RecurrentCell : uint8_t {
  LSTM = 0,
  GRU = 1,
  RNN_TANH = 2,
  RNN_RELU = 3,
};

// What an argument of a kernel's call is.
enum class ArgumentKind : uint8_t {
  NONE = 0,
  TENSOR = 1,
  RESULT = 2,
  TENSORS = 3,
  OPTIONAL_TENSORS = 4,
  RESULTS = 5,
  INTEGER = 6,
  BOOLEAN = 7,
  FLOAT = 8,
  TEXT = 9,
  INTEGERS = 10,
  BOOLEANS = 11,
  FLOATS = 12,
};

constexpr uint32_t kVersion = 10;  // the newest that is read

// The operation of a node.
enum class Operation : uint8_t {
  NONE = 0,
  Product = 1,
  BatchProduct = 2,
  Convolution = 3,
  Pooling = 4,
  Elementwise = 5,
  Norm = 6,
  GroupNorm = 7,
  Softmax = 8,
  Reduction = 9,
  Gather = 10,
  Copy = 11,
  Attention = 12,
  Convert = 13,
  QuantizeRows = 14,
  QuantizedProduct = 15,
  DynamicProduct = 16,
  QuantizedConvolution = 17,
  QuantizedBinary = 18,
  Lookup = 19,
  QuantizedPooling = 20,
  Recurrent = 21,
  CachedAttention = 22,
  Adapter = 23,
  KernelCall = 24,
};

// Division and modulo round as Python's // and % do. Since version 2.
class Expression : public Table {
 public:
  using Table::Table;
  ExpressionKind kind() const { return scalar<ExpressionKind>(0, ExpressionKind::CONSTANT); }
  // `a` and `b` are indices of earlier expressions. For CONSTANT, a is the value. For INPUT_SIZE, a
  // is the input and b its dimension, or -1 if the input itself is the integer.
  int64_t a() const { return scalar<int64_t>(1, 0); }
  int64_t b() const { return scalar<int64_t>(2, 0); }
};

// A view of memory. The order of its dimensions is the operator's; the strides say how they lie in
// memory. Sizes, strides and offset are those at the upper bounds of the inputs' sizes.
class Value : public Table {
 public:
  using Table::Table;
  ScalarType dtype() const { return scalar<ScalarType>(0, ScalarType::FLOAT); }
  // Elements of each dimension.
  Vector<int64_t> sizes() const { return Vector<int64_t>(target(1)); }
  bool has_sizes() const { return field(1) != nullptr; }
  // The distance in elements from one index to the next, for each dimension.
  Vector<int64_t> strides() const { return Vector<int64_t>(target(2)); }
  bool has_strides() const { return field(2) != nullptr; }
  Place place() const { return scalar<Place>(3, Place::SCRATCH); }
  // Which input, output or constant.
  uint32_t index() const { return scalar<uint32_t>(4, 0); }
  // Bytes from the start of the input, output, constant or scratch.
  uint64_t offset() const { return scalar<uint64_t>(5, 0); }
  // An expression for each dimension, or -1 if the number above holds for all inputs. Empty if all
  // do. The offset's expression is in bytes. Since version 2.
  Vector<int32_t> dynamic_sizes() const { return Vector<int32_t>(target(6)); }
  bool has_dynamic_sizes() const { return field(6) != nullptr; }
  // Since version 2.
  Vector<int32_t> dynamic_strides() const { return Vector<int32_t>(target(7)); }
  bool has_dynamic_strides() const { return field(7) != nullptr; }
  // Since version 2.
  int32_t dynamic_offset() const { return scalar<int32_t>(8, -1); }
};

// Bytes in the program's named data, aligned to 64.
class Constant : public Table {
 public:
  using Table::Table;
  StringView key() const { return string(0); }
  bool has_key() const { return field(0) != nullptr; }
  // Bytes.
  uint64_t size() const { return scalar<uint64_t>(1, 0); }
};

// Elementwise instructions, which run on one tile at a time: see cpp/engine/kernels/rows/tile.h.
class TileProgram : public Table {
 public:
  using Table::Table;
  // Three words for each instruction: op (a TileOp), out, a, b (one byte each, the lowest first);
  // then c; then value, as the bits of a float32.
  Vector<uint32_t> code() const { return Vector<uint32_t>(target(0)); }
  bool has_code() const { return field(0) != nullptr; }
  // The values to which LOAD and STORE refer by index.
  Vector<uint32_t> operands() const { return Vector<uint32_t>(target(1)); }
  bool has_operands() const { return field(1) != nullptr; }
};

// The epilogue of a product or convolution, which runs while the results are in cache.
class Epilogue : public Table {
 public:
  using Table::Table;
  bool clamped() const { return scalar<bool>(0, false); }
  float low() const { return scalar<float>(1, 0.0); }
  float high() const { return scalar<float>(2, 0.0); }
  // Runs over the rows and columns of the result, which is one of its operands.
  TileProgram program() const { return TileProgram(target(3)); }
  bool has_program() const { return field(3) != nullptr; }
  // A value [rows, columns] that is added before the clamp, if `added` is set.
  uint32_t residual() const { return scalar<uint32_t>(4, 0); }
  bool added() const { return scalar<bool>(5, false); }
};

// A matrix product with packed weights. Inputs: a, panels, bias, and since version 5 scales, if the
// panels are int8, or uint8 with 4 bits, as in a DynamicProduct, with groups or without. Since
// version 5 panels may also be float16.
class Product : public Table {
 public:
  using Table::Table;
  Epilogue epilogue() const { return Epilogue(target(0)); }
  bool has_epilogue() const { return field(0) != nullptr; }
};

// Products of matrices that are both computed, in batches. Inputs: a, b.
class BatchProduct : public Table {
 public:
  using Table::Table;
};

// A convolution over two dimensions. Inputs: images [N, C, H, W], weights, bias.
class Convolution : public Table {
 public:
  using Table::Table;
  ConvolutionKind kind() const { return scalar<ConvolutionKind>(0, ConvolutionKind::DENSE); }
  Vector<int64_t> kernel() const { return Vector<int64_t>(target(1)); }
  bool has_kernel() const { return field(1) != nullptr; }
  Vector<int64_t> stride() const { return Vector<int64_t>(target(2)); }
  bool has_stride() const { return field(2) != nullptr; }
  // Top, left, bottom, right.
  Vector<int64_t> padding() const { return Vector<int64_t>(target(3)); }
  bool has_padding() const { return field(3) != nullptr; }
  Vector<int64_t> dilation() const { return Vector<int64_t>(target(4)); }
  bool has_dilation() const { return field(4) != nullptr; }
  int64_t groups() const { return scalar<int64_t>(5, 0); }
  Epilogue epilogue() const { return Epilogue(target(6)); }
  bool has_epilogue() const { return field(6) != nullptr; }
};

// Pooling over two dimensions. Inputs: images [N, C, H, W].
class Pooling : public Table {
 public:
  using Table::Table;
  bool average() const { return scalar<bool>(0, false); }
  Vector<int64_t> kernel() const { return Vector<int64_t>(target(1)); }
  bool has_kernel() const { return field(1) != nullptr; }
  Vector<int64_t> stride() const { return Vector<int64_t>(target(2)); }
  bool has_stride() const { return field(2) != nullptr; }
  // Top, left, bottom, right.
  Vector<int64_t> padding() const { return Vector<int64_t>(target(3)); }
  bool has_padding() const { return field(3) != nullptr; }
  Vector<int64_t> dilation() const { return Vector<int64_t>(target(4)); }
  bool has_dilation() const { return field(4) != nullptr; }
  bool count_padding() const { return scalar<bool>(5, false); }
  // The divisor of averages; 0 if they divide by the number of elements.
  int64_t divisor() const { return scalar<int64_t>(6, 0); }
};

// Elementwise operators. The program has the operands; the operand of its first STORE has the sizes
// of all.
class Elementwise : public Table {
 public:
  using Table::Table;
  TileProgram program() const { return TileProgram(target(0)); }
  bool has_program() const { return field(0) != nullptr; }
};

// Layer norm or RMS norm of dense rows. Inputs: x, scale, shift.
class Norm : public Table {
 public:
  using Table::Table;
  bool rms() const { return scalar<bool>(0, false); }
  float epsilon() const { return scalar<float>(1, 0.0); }
};

// Group norm. Inputs: x, scale, shift.
class GroupNorm : public Table {
 public:
  using Table::Table;
  int64_t groups() const { return scalar<int64_t>(0, 0); }
  float epsilon() const { return scalar<float>(1, 0.0); }
};

// Softmax over one dimension.
class Softmax : public Table {
 public:
  using Table::Table;
  uint32_t dim() const { return scalar<uint32_t>(0, 0); }
  bool log() const { return scalar<bool>(1, false); }
};

// A reduction over neighbouring dimensions.
class Reduction : public Table {
 public:
  using Table::Table;
  ReductionKind kind() const { return scalar<ReductionKind>(0, ReductionKind::SUM); }
  // Dimensions first..last-1 are reduced.
  uint32_t first() const { return scalar<uint32_t>(1, 0); }
  uint32_t last() const { return scalar<uint32_t>(2, 0); }
};

// Rows of a table. Inputs: table, indices, and since version 7 scales, if the table is panels of
// integers as in a Product. The result has the table's dtype or, since version 5 for tables in half
// types and since version 7 for integers, float32.
class Gather : public Table {
 public:
  using Table::Table;
  // The number of columns of a table in panels, of which columns are taken. 0 for a table [rows,
  // width].
  int64_t columns() const { return scalar<int64_t>(0, 0); }
};

// A copy between memory of different strides.
class Copy : public Table {
 public:
  using Table::Table;
};

// Scaled dot product attention. Inputs: q, k, v [batch, heads, length, width], and a mask.
class Attention : public Table {
 public:
  using Table::Table;
  float scale() const { return scalar<float>(0, 0.0); }
  bool causal() const { return scalar<bool>(1, false); }
};

// Converts float32 to uint8 or back, number = scale * (integer - zero_point); or int8 to uint8 or
// back, with zero points 128 apart, so that the numbers stay the same. Since version 3.
class Convert : public Table {
 public:
  using Table::Table;
  float scale() const { return scalar<float>(0, 1.0); }
  int32_t zero_point() const { return scalar<int32_t>(1, 0); }
};

// Quantizes each row of float32 to uint8 with its own scale and zero point. Inputs: x. Outputs: the
// integers, and float32 [rows, 2]: scale and zero point. With groups, the integers are int8 from
// -127 to 127 without zero points; then the outputs are these, float32 [rows, groups]: the scales,
// and int32 [rows, groups]: the sums of each group's integers. Since version 3.
class QuantizeRows : public Table {
 public:
  using Table::Table;
  // Neighbours in a row that share a scale, 16 or 32; 0: all of them. Since version 8.
  int64_t group_size() const { return scalar<int64_t>(0, 0); }
};

// From a sum to uint8: round_half_even(sum * multiplier) + zero_point, clamped. Since version 3.
class Requantize : public Table {
 public:
  using Table::Table;
  int32_t zero_point() const { return scalar<int32_t>(0, 0); }
  int32_t low() const { return scalar<int32_t>(1, 0); }
  int32_t high() const { return scalar<int32_t>(2, 255); }
};

// An elementwise operator of uint8 a and b, which are broadcast. Since version 3.
class QuantizedBinary : public Table {
 public:
  using Table::Table;
  QuantizedBinaryKind kind() const {
    return scalar<QuantizedBinaryKind>(0, QuantizedBinaryKind::ADD);
  }
  float a_scale() const { return scalar<float>(1, 0.0); }
  int32_t a_zero_point() const { return scalar<int32_t>(2, 0); }
  float b_scale() const { return scalar<float>(3, 0.0); }
  int32_t b_zero_point() const { return scalar<int32_t>(4, 0); }
  float scale() const { return scalar<float>(5, 0.0); }
  Requantize requantize() const { return Requantize(target(6)); }
  bool has_requantize() const { return field(6) != nullptr; }
};

// A value that is added to uint8 results before they are stored. Since version 4.
class QuantizedResidual : public Table {
 public:
  using Table::Table;
  // A value [rows, columns] of uint8; it may lie where the result does.
  uint32_t value() const { return scalar<uint32_t>(0, 0); }
  // ADD or SUBTRACT; a is the requantized result, b the value.
  QuantizedBinary sum() const { return QuantizedBinary(target(1)); }
  bool has_sum() const { return field(1) != nullptr; }
};

// A matrix product of uint8 rows with packed int8 weights. Inputs: a, panels, start (int32: the
// start of each column's sum), multipliers (float32, one for each column). The result is uint8, or
// float32: sum * multiplier, then the epilogue. Since version 3.
class QuantizedProduct : public Table {
 public:
  using Table::Table;
  Requantize requantize() const { return Requantize(target(0)); }
  bool has_requantize() const { return field(0) != nullptr; }
  Epilogue epilogue() const { return Epilogue(target(1)); }
  bool has_epilogue() const { return field(1) != nullptr; }
  // Since version 4.
  QuantizedResidual residual() const { return QuantizedResidual(target(2)); }
  bool has_residual() const { return field(2) != nullptr; }
};

// A matrix product of rows quantised at run time with packed weights of 8 or 4 bits. Inputs: a
// (uint8), rows (float32 [rows, 2]: scale and zero point), panels (int8, or uint8 of 4 bits),
// scales, shares, bias (float32; may be left out). Scales are float32, one for each column, and
// shares int32: for each column the sum of its weights. With groups (of 4 bits), scales are
// float32, bfloat16 or, since version 8, float16 [panels, groups, 16], and shares float32: the sum
// of scale * weight. Arrays with one element for each column are filled up with zeros to whole
// panels. The result is float32.  If the rows are quantised in groups, weights of 8 bits may have
// groups, too, and there are no shares: inputs are the three outputs of QuantizeRows, panels,
// scales, bias. Since version 3.
class DynamicProduct : public Table {
 public:
  using Table::Table;
  uint8_t bits() const { return scalar<uint8_t>(0, 8); }
  // Terms that share a scale, a multiple of 8 that divides their number; 0: all of them.
  int64_t group_size() const { return scalar<int64_t>(1, 0); }
  Epilogue epilogue() const { return Epilogue(target(2)); }
  bool has_epilogue() const { return field(2) != nullptr; }
  // Terms of a row that share a scale, 16 or 32, which divide the weights' groups; 0: all of them.
  // Since version 8.
  int64_t row_group_size() const { return scalar<int64_t>(3, 0); }
};

// A convolution of uint8 images. Inputs: images, weights, start, multipliers, as for a product.
// Pixels outside the image are `padding_value`. DENSE or DEPTHWISE. Since version 3.
class QuantizedConvolution : public Table {
 public:
  using Table::Table;
  ConvolutionKind kind() const { return scalar<ConvolutionKind>(0, ConvolutionKind::DENSE); }
  Vector<int64_t> kernel() const { return Vector<int64_t>(target(1)); }
  bool has_kernel() const { return field(1) != nullptr; }
  Vector<int64_t> stride() const { return Vector<int64_t>(target(2)); }
  bool has_stride() const { return field(2) != nullptr; }
  // Top, left, bottom, right.
  Vector<int64_t> padding() const { return Vector<int64_t>(target(3)); }
  bool has_padding() const { return field(3) != nullptr; }
  Vector<int64_t> dilation() const { return Vector<int64_t>(target(4)); }
  bool has_dilation() const { return field(4) != nullptr; }
  int64_t groups() const { return scalar<int64_t>(5, 0); }
  uint8_t padding_value() const { return scalar<uint8_t>(6, 0); }
  Requantize requantize() const { return Requantize(target(7)); }
  bool has_requantize() const { return field(7) != nullptr; }
  Epilogue epilogue() const { return Epilogue(target(8)); }
  bool has_epilogue() const { return field(8) != nullptr; }
  // Since version 4.
  QuantizedResidual residual() const { return QuantizedResidual(target(9)); }
  bool has_residual() const { return field(9) != nullptr; }
};

// Replaces each uint8 by its entry in a table of 256 bytes. Inputs: x, table. Since version 3.
class Lookup : public Table {
 public:
  using Table::Table;
};

// Pooling of uint8 images. Inputs: images [N, C, H, W]. Averages are requantized, maxima are not.
// Since version 3.
class QuantizedPooling : public Table {
 public:
  using Table::Table;
  bool average() const { return scalar<bool>(0, false); }
  Vector<int64_t> kernel() const { return Vector<int64_t>(target(1)); }
  bool has_kernel() const { return field(1) != nullptr; }
  Vector<int64_t> stride() const { return Vector<int64_t>(target(2)); }
  bool has_stride() const { return field(2) != nullptr; }
  // Top, left, bottom, right.
  Vector<int64_t> padding() const { return Vector<int64_t>(target(3)); }
  bool has_padding() const { return field(3) != nullptr; }
  Vector<int64_t> dilation() const { return Vector<int64_t>(target(4)); }
  bool has_dilation() const { return field(4) != nullptr; }
  bool count_padding() const { return scalar<bool>(5, false); }
  // The divisor of averages; 0 if they divide by the number of elements.
  int64_t divisor() const { return scalar<int64_t>(6, 0); }
  int32_t in_zero_point() const { return scalar<int32_t>(7, 0); }
  // The input's scale divided by the result's.
  float multiplier() const { return scalar<float>(8, 1.0); }
  Requantize requantize() const { return Requantize(target(9)); }
  bool has_requantize() const { return field(9) != nullptr; }
};

// Recurrent layers over a sequence, one above the other, as torch has them. Inputs: x [length,
// batch, width], weights, bias, first hidden state [layers * directions, batch, outputs], first
// cell state [layers * directions, batch, units] (LSTM), scales and shares (of int8 weights). Only
// x and weights are needed; states that are left out are zeros. Outputs: [length, batch, directions
// * outputs], and the last states (may be left out), which lie as the first ones.  Weights are one
// vector with the matrices of each layer and direction, forward first: of the input [width, gates *
// units], of the hidden state [outputs, gates * units] and, if outputs < units, of the projection
// [units, outputs]. They are packed as of a Product (float32, bfloat16, float16) or of a
// DynamicProduct (int8; with a scale and a share for each column of each matrix, in the same
// order). Gates are in torch's order. Bias is one vector, too: for each layer and direction the
// bias of all gates, filled up with zeros to whole panels, and for a GRU then the hidden state's
// bias of the new gate, filled up likewise. Since version 6.
class Recurrent : public Table {
 public:
  using Table::Table;
  RecurrentCell cell() const { return scalar<RecurrentCell>(0, RecurrentCell::LSTM); }
  uint32_t layers() const { return scalar<uint32_t>(1, 0); }
  bool bidirectional() const { return scalar<bool>(2, false); }
  int64_t units() const { return scalar<int64_t>(3, 0); }
  int64_t outputs() const { return scalar<int64_t>(4, 0); }
};

// Attention of tokens of many sequences over the cache of a language model's runner, in which their
// keys and values are stored first. Inputs: query [tokens, heads, width], key [tokens, key heads,
// width], value [tokens, key heads, value width], positions and sequences (int64 [tokens]). Token i
// stands at positions[i] of sequence sequences[i]; tokens of one sequence are neighbours, at
// consecutive positions. The result is [tokens, heads, value width]. Since version 7.
class CachedAttention : public Table {
 public:
  using Table::Table;
  uint32_t layer() const { return scalar<uint32_t>(0, 0); }
  float scale() const { return scalar<float>(1, 0.0); }
  // The positions that a token sees, its own included; 0: all before it.
  int64_t window() const { return scalar<int64_t>(2, 0); }
  // Scores become softcap * tanh(score / softcap); 0: they stay.
  float softcap() const { return scalar<float>(3, 0.0); }
};

// What adapters (LoRA) add to the results of linear layers of the same rows. Inputs: their results
// side by side [tokens, sum of widths], the rows [tokens, in], and sequences (int64 [tokens]).
// Token i is computed with the adapter of sequences[i], which a language model's runner lends;
// without one its row stays. The result may lie where the first input does. Since version 9.
class Adapter : public Table {
 public:
  using Table::Table;
  // The number of each layer.
  Vector<int64_t> sites() const { return Vector<int64_t>(target(0)); }
  bool has_sites() const { return field(0) != nullptr; }
  // The columns of each layer's result.
  Vector<int64_t> widths() const { return Vector<int64_t>(target(1)); }
  bool has_widths() const { return field(1) != nullptr; }
  // The greatest rank of an adapter.
  uint32_t rank() const { return scalar<uint32_t>(2, 0); }
};

// An argument of a kernel's call. Since version 10.
class KernelArgument : public Table {
 public:
  using Table::Table;
  ArgumentKind kind() const { return scalar<ArgumentKind>(0, ArgumentKind::NONE); }
  uint32_t count() const { return scalar<uint32_t>(1, 0); }
  Vector<int64_t> integers() const { return Vector<int64_t>(target(2)); }
  bool has_integers() const { return field(2) != nullptr; }
  // An expression for each of the integers, or -1 if the number above holds for all inputs. Empty
  // if all do.
  Vector<int32_t> expressions() const { return Vector<int32_t>(target(3)); }
  bool has_expressions() const { return field(3) != nullptr; }
  Vector<double> floats() const { return Vector<double>(target(4)); }
  bool has_floats() const { return field(4) != nullptr; }
  StringView text() const { return string(5); }
  bool has_text() const { return field(5) != nullptr; }
};

// A call of a kernel of the user's own, which the runtime is given. Inputs and outputs are dense in
// their dim orders. What a kernel must fit is also in the program's named data: the schema of its
// operator. Since version 10.
class KernelCall : public Table {
 public:
  using Table::Table;
  // The out-variant, as in `acme::snake.out`.
  StringView name() const { return string(0); }
  bool has_name() const { return field(0) != nullptr; }
  Tables<KernelArgument> arguments() const { return Tables<KernelArgument>(target(1)); }
  bool has_arguments() const { return field(1) != nullptr; }
  // The dimensions of each input and then each output that is not left out, the outermost first.
  Vector<uint8_t> dim_orders() const { return Vector<uint8_t>(target(2)); }
  bool has_dim_orders() const { return field(2) != nullptr; }
};

// One fused operator. Errors and events name it by its index.
class Node : public Table {
 public:
  using Table::Table;
  Operation operation_type() const { return scalar<Operation>(0, Operation::NONE); }
  // Absent unless the type is this one.
  Product operation_as_Product() const {
    return Product(member(0, static_cast<uint8_t>(Operation::Product)));
  }
  BatchProduct operation_as_BatchProduct() const {
    return BatchProduct(member(0, static_cast<uint8_t>(Operation::BatchProduct)));
  }
  Convolution operation_as_Convolution() const {
    return Convolution(member(0, static_cast<uint8_t>(Operation::Convolution)));
  }
  Pooling operation_as_Pooling() const {
    return Pooling(member(0, static_cast<uint8_t>(Operation::Pooling)));
  }
  Elementwise operation_as_Elementwise() const {
    return Elementwise(member(0, static_cast<uint8_t>(Operation::Elementwise)));
  }
  Norm operation_as_Norm() const { return Norm(member(0, static_cast<uint8_t>(Operation::Norm))); }
  GroupNorm operation_as_GroupNorm() const {
    return GroupNorm(member(0, static_cast<uint8_t>(Operation::GroupNorm)));
  }
  Softmax operation_as_Softmax() const {
    return Softmax(member(0, static_cast<uint8_t>(Operation::Softmax)));
  }
  Reduction operation_as_Reduction() const {
    return Reduction(member(0, static_cast<uint8_t>(Operation::Reduction)));
  }
  Gather operation_as_Gather() const {
    return Gather(member(0, static_cast<uint8_t>(Operation::Gather)));
  }
  Copy operation_as_Copy() const { return Copy(member(0, static_cast<uint8_t>(Operation::Copy))); }
  Attention operation_as_Attention() const {
    return Attention(member(0, static_cast<uint8_t>(Operation::Attention)));
  }
  Convert operation_as_Convert() const {
    return Convert(member(0, static_cast<uint8_t>(Operation::Convert)));
  }
  QuantizeRows operation_as_QuantizeRows() const {
    return QuantizeRows(member(0, static_cast<uint8_t>(Operation::QuantizeRows)));
  }
  QuantizedProduct operation_as_QuantizedProduct() const {
    return QuantizedProduct(member(0, static_cast<uint8_t>(Operation::QuantizedProduct)));
  }
  DynamicProduct operation_as_DynamicProduct() const {
    return DynamicProduct(member(0, static_cast<uint8_t>(Operation::DynamicProduct)));
  }
  QuantizedConvolution operation_as_QuantizedConvolution() const {
    return QuantizedConvolution(member(0, static_cast<uint8_t>(Operation::QuantizedConvolution)));
  }
  QuantizedBinary operation_as_QuantizedBinary() const {
    return QuantizedBinary(member(0, static_cast<uint8_t>(Operation::QuantizedBinary)));
  }
  Lookup operation_as_Lookup() const {
    return Lookup(member(0, static_cast<uint8_t>(Operation::Lookup)));
  }
  QuantizedPooling operation_as_QuantizedPooling() const {
    return QuantizedPooling(member(0, static_cast<uint8_t>(Operation::QuantizedPooling)));
  }
  Recurrent operation_as_Recurrent() const {
    return Recurrent(member(0, static_cast<uint8_t>(Operation::Recurrent)));
  }
  CachedAttention operation_as_CachedAttention() const {
    return CachedAttention(member(0, static_cast<uint8_t>(Operation::CachedAttention)));
  }
  Adapter operation_as_Adapter() const {
    return Adapter(member(0, static_cast<uint8_t>(Operation::Adapter)));
  }
  KernelCall operation_as_KernelCall() const {
    return KernelCall(member(0, static_cast<uint8_t>(Operation::KernelCall)));
  }
  bool has_operation() const { return field(1) != nullptr; }
  // Values; -1 for one that is left out.
  Vector<int32_t> inputs() const { return Vector<int32_t>(target(2)); }
  bool has_inputs() const { return field(2) != nullptr; }
  Vector<int32_t> outputs() const { return Vector<int32_t>(target(3)); }
  bool has_outputs() const { return field(3) != nullptr; }
};

// The whole payload.
class Graph : public Table {
 public:
  using Table::Table;
  uint32_t version() const { return scalar<uint32_t>(0, 0); }
  Tables<Value> values() const { return Tables<Value>(target(1)); }
  bool has_values() const { return field(1) != nullptr; }
  Tables<Constant> constants() const { return Tables<Constant>(target(2)); }
  bool has_constants() const { return field(2) != nullptr; }
  Tables<Node> nodes() const { return Tables<Node>(target(3)); }
  bool has_nodes() const { return field(3) != nullptr; }
  uint32_t n_inputs() const { return scalar<uint32_t>(4, 0); }
  uint32_t n_outputs() const { return scalar<uint32_t>(5, 0); }
  // Bytes of the memory that values in scratch share.
  uint64_t scratch_size() const { return scalar<uint64_t>(6, 0); }
  // Sizes that follow from the inputs' sizes. Without any, all sizes are fixed. Since version 2.
  Tables<Expression> expressions() const { return Tables<Expression>(target(7)); }
  bool has_expressions() const { return field(7) != nullptr; }
  // For each input, then each output: the value that has its sizes (those at the upper bounds), or
  // -1 for a number. Empty if there are no expressions. Since version 2.
  Vector<int32_t> arguments() const { return Vector<int32_t>(target(8)); }
  bool has_arguments() const { return field(8) != nullptr; }
};

// What verify_flatbuffer walks.
namespace cpu_engine_layout {

inline constexpr FieldLayout kFields[] = {
    // Graph
    {FieldKind::Scalar, 2},  // version
    {FieldKind::Tables, 1},  // values
    {FieldKind::Tables, 2},  // constants
    {FieldKind::Tables, 3},  // nodes
    {FieldKind::Scalar, 2},  // n_inputs
    {FieldKind::Scalar, 2},  // n_outputs
    {FieldKind::Scalar, 3},  // scratch_size
    {FieldKind::Tables, 4},  // expressions
    {FieldKind::Vector, 2},  // arguments
    // Value
    {FieldKind::Scalar, 0},  // dtype
    {FieldKind::Vector, 3},  // sizes
    {FieldKind::Vector, 3},  // strides
    {FieldKind::Scalar, 0},  // place
    {FieldKind::Scalar, 2},  // index
    {FieldKind::Scalar, 3},  // offset
    {FieldKind::Vector, 2},  // dynamic_sizes
    {FieldKind::Vector, 2},  // dynamic_strides
    {FieldKind::Scalar, 2},  // dynamic_offset
    // Constant
    {FieldKind::String, 0},  // key
    {FieldKind::Scalar, 3},  // size
    // Node
    {FieldKind::Union, 0},       // operation_type
    {FieldKind::UnionValue, 0},  // operation
    {FieldKind::Vector, 2},      // inputs
    {FieldKind::Vector, 2},      // outputs
    // Expression
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Scalar, 3},  // a
    {FieldKind::Scalar, 3},  // b
    // Product
    {FieldKind::Table, 29},  // epilogue
    // BatchProduct
    // Convolution
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Vector, 3},  // kernel
    {FieldKind::Vector, 3},  // stride
    {FieldKind::Vector, 3},  // padding
    {FieldKind::Vector, 3},  // dilation
    {FieldKind::Scalar, 3},  // groups
    {FieldKind::Table, 29},  // epilogue
    // Pooling
    {FieldKind::Scalar, 0},  // average
    {FieldKind::Vector, 3},  // kernel
    {FieldKind::Vector, 3},  // stride
    {FieldKind::Vector, 3},  // padding
    {FieldKind::Vector, 3},  // dilation
    {FieldKind::Scalar, 0},  // count_padding
    {FieldKind::Scalar, 3},  // divisor
    // Elementwise
    {FieldKind::Table, 30},  // program
    // Norm
    {FieldKind::Scalar, 0},  // rms
    {FieldKind::Scalar, 2},  // epsilon
    // GroupNorm
    {FieldKind::Scalar, 3},  // groups
    {FieldKind::Scalar, 2},  // epsilon
    // Softmax
    {FieldKind::Scalar, 2},  // dim
    {FieldKind::Scalar, 0},  // log
    // Reduction
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Scalar, 2},  // first
    {FieldKind::Scalar, 2},  // last
    // Gather
    {FieldKind::Scalar, 3},  // columns
    // Copy
    // Attention
    {FieldKind::Scalar, 2},  // scale
    {FieldKind::Scalar, 0},  // causal
    // Convert
    {FieldKind::Scalar, 2},  // scale
    {FieldKind::Scalar, 2},  // zero_point
    // QuantizeRows
    {FieldKind::Scalar, 3},  // group_size
    // QuantizedProduct
    {FieldKind::Table, 31},  // requantize
    {FieldKind::Table, 29},  // epilogue
    {FieldKind::Table, 32},  // residual
    // DynamicProduct
    {FieldKind::Scalar, 0},  // bits
    {FieldKind::Scalar, 3},  // group_size
    {FieldKind::Table, 29},  // epilogue
    {FieldKind::Scalar, 3},  // row_group_size
    // QuantizedConvolution
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Vector, 3},  // kernel
    {FieldKind::Vector, 3},  // stride
    {FieldKind::Vector, 3},  // padding
    {FieldKind::Vector, 3},  // dilation
    {FieldKind::Scalar, 3},  // groups
    {FieldKind::Scalar, 0},  // padding_value
    {FieldKind::Table, 31},  // requantize
    {FieldKind::Table, 29},  // epilogue
    {FieldKind::Table, 32},  // residual
    // QuantizedBinary
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Scalar, 2},  // a_scale
    {FieldKind::Scalar, 2},  // a_zero_point
    {FieldKind::Scalar, 2},  // b_scale
    {FieldKind::Scalar, 2},  // b_zero_point
    {FieldKind::Scalar, 2},  // scale
    {FieldKind::Table, 31},  // requantize
    // Lookup
    // QuantizedPooling
    {FieldKind::Scalar, 0},  // average
    {FieldKind::Vector, 3},  // kernel
    {FieldKind::Vector, 3},  // stride
    {FieldKind::Vector, 3},  // padding
    {FieldKind::Vector, 3},  // dilation
    {FieldKind::Scalar, 0},  // count_padding
    {FieldKind::Scalar, 3},  // divisor
    {FieldKind::Scalar, 2},  // in_zero_point
    {FieldKind::Scalar, 2},  // multiplier
    {FieldKind::Table, 31},  // requantize
    // Recurrent
    {FieldKind::Scalar, 0},  // cell
    {FieldKind::Scalar, 2},  // layers
    {FieldKind::Scalar, 0},  // bidirectional
    {FieldKind::Scalar, 3},  // units
    {FieldKind::Scalar, 3},  // outputs
    // CachedAttention
    {FieldKind::Scalar, 2},  // layer
    {FieldKind::Scalar, 2},  // scale
    {FieldKind::Scalar, 3},  // window
    {FieldKind::Scalar, 2},  // softcap
    // Adapter
    {FieldKind::Vector, 3},  // sites
    {FieldKind::Vector, 3},  // widths
    {FieldKind::Scalar, 2},  // rank
    // KernelCall
    {FieldKind::String, 0},   // name
    {FieldKind::Tables, 33},  // arguments
    {FieldKind::Vector, 0},   // dim_orders
    // Epilogue
    {FieldKind::Scalar, 0},  // clamped
    {FieldKind::Scalar, 2},  // low
    {FieldKind::Scalar, 2},  // high
    {FieldKind::Table, 30},  // program
    {FieldKind::Scalar, 2},  // residual
    {FieldKind::Scalar, 0},  // added
    // TileProgram
    {FieldKind::Vector, 2},  // code
    {FieldKind::Vector, 2},  // operands
    // Requantize
    {FieldKind::Scalar, 2},  // zero_point
    {FieldKind::Scalar, 2},  // low
    {FieldKind::Scalar, 2},  // high
    // QuantizedResidual
    {FieldKind::Scalar, 2},  // value
    {FieldKind::Table, 22},  // sum
    // KernelArgument
    {FieldKind::Scalar, 0},  // kind
    {FieldKind::Scalar, 2},  // count
    {FieldKind::Vector, 3},  // integers
    {FieldKind::Vector, 2},  // expressions
    {FieldKind::Vector, 3},  // floats
    {FieldKind::String, 0},  // text
};
inline constexpr TableLayout kTables[] = {
    {0, 9},    // 0 Graph
    {9, 9},    // 1 Value
    {18, 2},   // 2 Constant
    {20, 4},   // 3 Node
    {24, 3},   // 4 Expression
    {27, 1},   // 5 Product
    {28, 0},   // 6 BatchProduct
    {28, 7},   // 7 Convolution
    {35, 7},   // 8 Pooling
    {42, 1},   // 9 Elementwise
    {43, 2},   // 10 Norm
    {45, 2},   // 11 GroupNorm
    {47, 2},   // 12 Softmax
    {49, 3},   // 13 Reduction
    {52, 1},   // 14 Gather
    {53, 0},   // 15 Copy
    {53, 2},   // 16 Attention
    {55, 2},   // 17 Convert
    {57, 1},   // 18 QuantizeRows
    {58, 3},   // 19 QuantizedProduct
    {61, 4},   // 20 DynamicProduct
    {65, 10},  // 21 QuantizedConvolution
    {75, 7},   // 22 QuantizedBinary
    {82, 0},   // 23 Lookup
    {82, 10},  // 24 QuantizedPooling
    {92, 5},   // 25 Recurrent
    {97, 4},   // 26 CachedAttention
    {101, 3},  // 27 Adapter
    {104, 3},  // 28 KernelCall
    {107, 6},  // 29 Epilogue
    {113, 2},  // 30 TileProgram
    {115, 3},  // 31 Requantize
    {118, 2},  // 32 QuantizedResidual
    {120, 6},  // 33 KernelArgument
};
inline constexpr UnionLayout kUnions[] = {
    {0, 24},  // Operation
};
inline constexpr uint8_t kMembers[] = {
    5,   // Product
    6,   // BatchProduct
    7,   // Convolution
    8,   // Pooling
    9,   // Elementwise
    10,  // Norm
    11,  // GroupNorm
    12,  // Softmax
    13,  // Reduction
    14,  // Gather
    15,  // Copy
    16,  // Attention
    17,  // Convert
    18,  // QuantizeRows
    19,  // QuantizedProduct
    20,  // DynamicProduct
    21,  // QuantizedConvolution
    22,  // QuantizedBinary
    23,  // Lookup
    24,  // QuantizedPooling
    25,  // Recurrent
    26,  // CachedAttention
    27,  // Adapter
    28,  // KernelCall
};
inline constexpr Layout kGraph = {kFields, kTables, kUnions, kMembers};

}  // namespace cpu_engine_layout

inline constexpr char kGraphIdentifier[] = "RC01";

// True if the buffer can be read through these views; says nothing of its meaning.
inline bool verify_Graph(const uint8_t* data, size_t size) {
  return verify_flatbuffer(data, size, cpu_engine_layout::kGraph);
}
// The root of a buffer that was verified.
inline Graph root_Graph(const uint8_t* data) { return Graph(follow(data)); }

}  // namespace cpu_engine
}  // namespace fb
}  // namespace rushlight
