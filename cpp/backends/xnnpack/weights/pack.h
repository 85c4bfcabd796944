// Packs weights of XNNPACK graphs in the layout of the engine's kernels: see
// engine/types/{product,convolution}.h, and src/rushlight/backends/cpu/graph/panels.py for the same
// at export.
#pragma once

#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/platform/workers.h"

namespace rushlight::xnnpack {

// The filter of a convolution, [outputs, taps, inputs / groups]; if depthwise, [taps, outputs].
struct Filter {
  const void* data = nullptr;
  DType dtype = DType::Float32;  // fully connected layers may also have Float16 or BFloat16
  int64_t taps = 1;              // height * width
  int64_t inputs = 1;            // of a group
  int64_t outputs = 1;           // of a group
  int64_t groups = 1;
};

// The number of floats when packed; -1 if there are too many.
int64_t dense_floats(const Filter& filter);
int64_t depthwise_floats(const Filter& filter);
int64_t transposed_floats(const Filter& filter);
int64_t winograd_floats(const Filter& filter);
int64_t bias_floats(int64_t outputs);

// Widens `n` elements of a float type, which need not be aligned.
void widen(const void* from, DType dtype, int64_t n, float* to);

// Packs a fully connected layer, which is a dense filter of one tap; if `is_transposed`, it is
// [inputs, outputs].
void pack_linear(const Filter& filter, bool is_transposed, float* to, Workers* workers);
void pack_dense(const Filter& filter, float* to, Workers* workers);
void pack_depthwise(const Filter& filter, float* to);
void pack_transposed(const Filter& filter, float* to);
// Packs 3 by 3 taps for Winograd's algorithm: panels of a matrix [inputs, outputs] for each of its
// products. There are no groups, and inputs and outputs fill whole panels.
void pack_winograd(const Filter& filter, float* to);
void pack_bias(const float* bias, int64_t outputs, float* to);

}  // namespace rushlight::xnnpack
