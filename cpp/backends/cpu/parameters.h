// What a step of a graph does, and on which values: all that an operator is made from, whatever
// payload it was read from. What spans show must live as long as the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "rushlight/backends/cpu/kernels/rows.h"
#include "rushlight/backends/cpu/kernels/tile.h"
#include "rushlight/core/span.h"

namespace rushlight::cpu {

// Elementwise instructions, and the values that Load and Store number.
struct TileProgram {
  Span<const TileInstruction> code;
  Span<const uint32_t> operands;

  bool present() const { return !code.empty() || !operands.empty(); }
};

// What is done to results of a product or convolution before they leave the cache.
struct FinishParameters {
  bool clamped = false;
  float low = 0;
  float high = 0;
  TileProgram program;    // over the rows and columns of the result, which is among its operands
  int64_t residual = -1;  // a value [rows, columns] that is added before the clamp; -1 for none
};

// Vertical, then horizontal. Where it may lie is checked by read_geometry() (operators/geometry.h).
struct Window {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t padding[4] = {};  // top, left, bottom, right
  int64_t dilation[2] = {1, 1};
};

// A matrix product with packed weights. Inputs: a, panels, bias.
struct ProductParameters {
  FinishParameters finish;
};

// Products of matrices that are both computed, in batches. Inputs: a, b.
struct BatchProductParameters {};

enum class ConvolutionKind : uint8_t { Dense, Depthwise, Transposed, Winograd };

// Inputs: images [N, C, H, W], weights, bias.
struct ConvolutionParameters {
  ConvolutionKind kind = ConvolutionKind::Dense;
  Window window;
  int64_t groups = 1;
  FinishParameters finish;
};

// Inputs: images [N, C, H, W].
struct PoolingParameters {
  bool average = false;
  Window window;
  bool count_padding = false;
  int64_t divisor = 0;  // of averages, if not 0
};

// The maximum of each window of images [N, C, H, W] without padding, and where in its window it is:
// windows lie side by side. Outputs: the maxima, and their places as int64.
struct ArgMaxParameters {
  int64_t kernel[2] = {1, 1};
};

// Images [N, C, H, W] at another size, by bilinear interpolation.
struct ResizeParameters {
  bool align_corners = false;
};

// The first Store has the sizes of all. The step's own inputs and outputs are not looked at.
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
  int64_t columns = 0;  // of a table in panels; 0 of a table [rows, width]
};

// A copy between memory of different steps, or dtypes: float32 and a half type.
struct CopyParameters {};

// Inputs: q, k, v [batch, heads, length, width], and a mask.
struct AttentionParameters {
  float scale = 1;
  bool causal = false;
};

using Parameters =
    std::variant<ProductParameters, BatchProductParameters, ConvolutionParameters,
                 PoolingParameters, ArgMaxParameters, ResizeParameters, ElementwiseParameters,
                 NormParameters, GroupNormParameters, SoftmaxParameters, ReductionParameters,
                 GatherParameters, CopyParameters, AttentionParameters>;

// One fused operator.
struct Step {
  Parameters parameters;
  Span<const int32_t> inputs;  // values; -1 for one that is left out
  Span<const int32_t> outputs;
  int64_t id = -1;  // by which errors and events name it; -1: its number among the steps
};

}  // namespace rushlight::cpu
