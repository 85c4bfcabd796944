// What a node of a graph does, and on which values: all that an operator is made from, independent
// of the payload's format. The memory behind spans must live as long as the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "rushlight/core/span.h"
#include "rushlight/engine/types/quantized.h"
#include "rushlight/engine/types/recurrent.h"
#include "rushlight/engine/types/rows.h"
#include "rushlight/engine/types/tile.h"

namespace rushlight::engine {

// Elementwise instructions, and the values that Load and Store number.
struct TileProgram {
  Span<const TileInstruction> code;
  Span<const uint32_t> operands;

  bool present() const { return !code.empty() || !operands.empty(); }
};

// What is done to results of a product or convolution before they leave the cache.
struct EpilogueParameters {
  bool clamped = false;
  float low = 0;
  float high = 0;
  TileProgram
      program;  // runs over the result's rows and columns; the result is one of its operands
  int64_t residual = -1;  // a value [rows, columns] that is added before the clamp; -1 for none
};

// Vertical, then horizontal. Checked by read_geometry() (operators/images/geometry.h).
struct Window {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t padding[4] = {};  // top, left, bottom, right
  int64_t dilation[2] = {1, 1};
};

// A matrix product with packed weights. Inputs: a, panels, bias, and the scales of panels of
// integers.
struct ProductParameters {
  EpilogueParameters epilogue;
};

// Products of matrices that are both computed, in batches. Inputs: a, b.
struct BatchProductParameters {};

enum class ConvolutionKind : uint8_t { Dense, Depthwise, Transposed, Winograd };

// Inputs: images [N, C, H, W], weights, bias.
struct ConvolutionParameters {
  ConvolutionKind kind = ConvolutionKind::Dense;
  Window window;
  int64_t groups = 1;
  EpilogueParameters epilogue;
};

// Inputs: images [N, C, H, W].
struct PoolingParameters {
  bool average = false;
  Window window;
  bool count_padding = false;
  int64_t divisor = 0;  // an average divides by this if it is not 0
};

// The maximum of each window of images [N, C, H, W] without padding, and its position in the
// window. Windows do not overlap. Outputs: the maxima, and their positions as int64.
struct ArgMaxParameters {
  int64_t kernel[2] = {1, 1};
};

// Images [N, C, H, W] at another size, by bilinear interpolation.
struct ResizeParameters {
  bool align_corners = false;
};

// The operand of the first Store has the sizes of the whole operator. The node's own inputs and
// outputs are ignored.
struct ElementwiseParameters {
  TileProgram program;
};

// Layer norm or RMS norm of dense rows. Inputs: x, scale, shift.
struct NormParameters {
  bool rms = false;
  float epsilon = 0;
};

// Inputs: x, scale, shift.
struct GroupNormParameters {
  int64_t groups = 1;
  float epsilon = 0;
};

// Softmax over one dimension.
struct SoftmaxParameters {
  size_t dim = 0;
  bool log = false;
};

// A reduction over dimensions first..last-1.
struct ReductionParameters {
  Reduction kind = Reduction::Sum;
  size_t first = 0;
  size_t last = 0;
};

// Rows of a table. Inputs: table, indices.
struct GatherParameters {
  int64_t columns = 0;  // of a table that is stored in panels; 0 if the table is [rows, width]
};

// A copy between memory of different strides, or dtypes: float32 and a half type.
struct CopyParameters {};

// Inputs: q, k, v [batch, heads, length, width], and a mask.
struct AttentionParameters {
  float scale = 1;
  bool causal = false;
};

// An elementwise operator of uint8 a and b; a stride of 0 repeats an operand.
struct QuantizedBinaryParameters {
  QuantizedBinaryKind kind = QuantizedBinaryKind::Add;
  float a_scale = 1;
  int32_t a_zero_point = 0;
  float b_scale = 1;
  int32_t b_zero_point = 0;
  float scale = 1;
  Requantize requantize;
};

// What is added to a uint8 result before it is stored: a value [rows, columns], which may lie where
// the result does. In `sum`, a is the result and b this value.
struct QuantizedResidualParameters {
  int64_t value = -1;  // -1 for none
  QuantizedBinaryParameters sum;
};

// Inputs: x, and a table of 256 bytes.
struct LookupParameters {};

// Inputs: images [N, C, H, W] of uint8. A maximum is not requantized.
struct QuantizedPoolingParameters : PoolingParameters {
  int32_t in_zero_point = 0;
  float multiplier = 1;  // the input's scale divided by the result's; for averages only
  bool adds_zero_point_first = false;  // see QuantizedPooling
  Requantize requantize;
};

// Dense or depthwise. Inputs: images [N, C, H, W] of uint8, weights
// (kernels/quantized_convolution.h), start and multipliers as for a product. Pixels outside the
// image are `padding_value`.
struct QuantizedConvolutionParameters : ConvolutionParameters {
  uint8_t padding_value = 0;
  Requantize requantize;
  QuantizedResidualParameters residual;
};

// From float32 to uint8 or back, number = scale * (integer - zero_point); or between int8 and
// uint8, whose zero points are 128 apart: the same numbers.
struct ConvertParameters {
  float scale = 1;
  int32_t zero_point = 0;
};

// Inputs: x, of float32. Outputs: uint8, and float32 [rows, 2]: each row's scale and zero point.
// With groups: int8, float32 [rows, groups] and int32 [rows, groups], the sums of the integers.
struct QuantizeRowsParameters {
  int64_t group_size = 0;  // terms that share a scale; 0: all of them
};

// A matrix product of uint8 with packed int8 weights (kernels/dot_product.h). Inputs: a, panels,
// start (int32), multipliers (float32). The result is uint8, or float32 after the epilogue.
struct QuantizedProductParameters {
  Requantize requantize;
  EpilogueParameters epilogue;
  QuantizedResidualParameters residual;
};

// The same of rows that were quantised at run time. Inputs: a, rows (float32 [rows, 2]), panels,
// scales, shares, bias; or a, scales and sums of its groups, panels, scales, bias.
struct DynamicProductParameters {
  int32_t bits = 8;
  int64_t group_size = 0;      // terms that share a scale; 0: all of them
  int64_t row_group_size = 0;  // the same of rows
  EpilogueParameters epilogue;
};

// Recurrent layers over a sequence. Inputs: x [length, batch, width], weights, bias, first hidden
// and cell states, scales and shares of int8 weights. Outputs: the sequence, last hidden and cell
// states. How they lie: types/recurrent.h.
struct RecurrentParameters {
  RecurrentCell cell = RecurrentCell::Lstm;
  int64_t layers = 1;
  bool bidirectional = false;
  int64_t units = 0;
  int64_t outputs = 0;
};

// Attention of tokens of many sequences over the runner's cache (delegate/kv_cache.h), in which it
// first stores their keys and values. Inputs: query [tokens, heads, width], key [tokens, key heads,
// width], value [tokens, key heads, value width], and int64 positions and sequences [tokens].
struct CachedAttentionParameters {
  uint32_t layer = 0;
  float scale = 1;
  int64_t window = 0;  // positions that a token sees, its own included; 0: all before it
  float softcap = 0;   // scores become softcap * tanh(score / softcap); 0: they stay
};

// What adapters of the runner (delegate/adapter.h) add to linear layers of the same rows. Inputs:
// their results side by side [tokens, sum of widths], the rows [tokens, in] and int64 sequences
// [tokens].
struct AdapterParameters {
  Span<const int64_t> sites;   // the number of each layer
  Span<const int64_t> widths;  // the columns of each layer's result
  uint32_t rank = 0;           // the greatest
};

using fb::cpu_engine::ArgumentKind;

// An argument of a call of a kernel, as in schema/cpu_engine.fbs.
struct KernelArgument {
  ArgumentKind kind = ArgumentKind::NONE;
  uint32_t count = 0;
  Span<const int64_t> integers;
  Span<const int32_t> expressions;
  Span<const double> floats;
  StringView text;
};

// A kernel of the user's own. Inputs and outputs are those of its arguments, dense in `dim_orders`.
struct KernelCallParameters {
  StringView name;
  Span<const KernelArgument> arguments;
  Span<const uint8_t> dim_orders;
};

using Parameters =
    std::variant<ProductParameters, BatchProductParameters, ConvolutionParameters,
                 PoolingParameters, ArgMaxParameters, ResizeParameters, ElementwiseParameters,
                 NormParameters, GroupNormParameters, SoftmaxParameters, ReductionParameters,
                 GatherParameters, CopyParameters, AttentionParameters, QuantizedBinaryParameters,
                 LookupParameters, QuantizedPoolingParameters, ConvertParameters,
                 QuantizeRowsParameters, QuantizedProductParameters, DynamicProductParameters,
                 QuantizedConvolutionParameters, RecurrentParameters, CachedAttentionParameters,
                 AdapterParameters, KernelCallParameters>;

// One fused operator.
struct Node {
  Parameters parameters;
  Span<const int32_t> inputs;  // values; -1 for one that is left out
  Span<const int32_t> outputs;
  int64_t id = -1;  // the number in errors and events; -1: its index among the nodes
};

}  // namespace rushlight::engine
