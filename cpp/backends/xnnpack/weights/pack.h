// Weights of XNNPACK graphs in the order in which the engine's kernels read them: see
// engine/types/{product,convolution}.h, and src/rushlight/backends/cpu/graph/panels.py for the same
// ahead of time.
#pragma once

#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/platform/workers.h"

namespace rushlight::xnnpack {

// The filter of a convolution, [outputs, taps, inputs / groups]; of a depthwise one [taps,
// outputs].
struct Filter {
  const void* data = nullptr;
  DType dtype = DType::Float32;  // Float16 and BFloat16 of fully connected layers, too
  int64_t taps = 1;              // height * width
  int64_t inputs = 1;            // of a group
  int64_t outputs = 1;           // of a group
  int64_t groups = 1;
};

// Floats that the packed form has; -1 if there are too many.
int64_t dense_floats(const Filter& filter);
int64_t depthwise_floats(const Filter& filter);
int64_t transposed_floats(const Filter& filter);
int64_t winograd_floats(const Filter& filter);
int64_t bias_floats(int64_t outputs);

// `n` elements of a float type as float32; they need no alignment.
void widen(const void* from, DType dtype, int64_t n, float* to);

// A fully connected layer is a dense filter of one tap; `is_transposed`: it lies as [inputs,
// outputs].
void pack_linear(const Filter& filter, bool is_transposed, float* to, Workers* workers);
void pack_dense(const Filter& filter, float* to, Workers* workers);
void pack_depthwise(const Filter& filter, float* to);
void pack_transposed(const Filter& filter, float* to);
// Of 3 by 3 taps, without groups, whole panels of inputs and outputs: panels of a matrix [inputs,
// outputs] for each product of Winograd's algorithm.
void pack_winograd(const Filter& filter, float* to);
void pack_bias(const float* bias, int64_t outputs, float* to);

}  // namespace rushlight::xnnpack
