// What the operators that resize images share: the sizes asked for, and the strides.
#pragma once

#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// One spatial axis: sizes, strides in elements, and the scale factor, 0 if the output size alone
// was given.
struct UpsampleAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t in_stride = 0;
  int64_t out_stride = 0;
  double factor = 0.0;

  // Input elements per output element, computed in T.
  template <typename T>
  T scale() const {
    return factor > 0.0 ? static_cast<T>(1.0 / factor) : static_cast<T>(in) / static_cast<T>(out);
  }
};

struct Upsampling {
  UpsampleAxis h;
  UpsampleAxis w;
  int64_t n = 1;
  int64_t c = 1;
  int64_t in_n = 0, in_c = 0;
  int64_t out_n = 0, out_c = 0;
};

// Reads output_size and scale_factors, of which one must be None, and gives `out` its sizes.
// InvalidArgument, naming the argument, if one is out of range.
Status read_upsampling(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                       const EValue& scale_factors, Tensor& out, Upsampling* upsampling);

}  // namespace rushlight::kernels
