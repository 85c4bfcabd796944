// What the operators that resize images share: reading the requested sizes, and the strides.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// One spatial axis: sizes, strides in elements, and the scale factor, which is 0 if only the output
// size was given.
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
  // The same. The corners of input and output are aligned if `align_corners`.
  template <typename T>
  T scale(bool align_corners) const {
    if (!align_corners) return scale<T>();
    return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : static_cast<T>(0);
  }
  // The position of the centre of output element `o` among the input elements. It may be negative
  // before the first one.
  template <typename T>
  T position(bool align_corners, int64_t o) const {
    const T ratio = scale<T>(align_corners);
    if (align_corners) return ratio * static_cast<T>(o);
    const T half = static_cast<T>(0.5);
    return std::fma(ratio, static_cast<T>(o) + half, -half);  // rounded once, as eager does
  }
};

// Images have one to three spatial axes; a missing one has size 1.
struct Upsampling {
  UpsampleAxis d;
  UpsampleAxis h;
  UpsampleAxis w;
  int64_t n = 1;
  int64_t c = 1;
  int64_t in_n = 0, in_c = 0;
  int64_t out_n = 0, out_c = 0;

  int64_t in_plane(int64_t plane) const { return plane / c * in_n + plane % c * in_c; }
  int64_t out_plane(int64_t plane) const { return plane / c * out_n + plane % c * out_c; }
  // True if eager treats the input's memory as channels-last. Dimensions of size 1 may have any
  // stride.
  bool channels_last() const;
  // For operators that copy an axis whose size does not change, whatever the scale factor is.
  void ignore_factors_of_kept_sizes();
  // The number of planes that have about 16K output elements.
  int64_t plane_grain() const;
};

// Reads output_size and scale_factors, of which one must be None, and resizes `out`. Returns
// InvalidArgument and names the argument if one is out of range.
Status read_upsampling(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                       const EValue& scale_factors, Tensor& out, Upsampling* upsampling);

// The same for operators that get the output size and an optional scale factor for each of the
// `dims` spatial axes.
Status read_upsampling_to(KernelContext& ctx, const Tensor& in, const EValue& output_size,
                          EValue* const* scales, size_t dims, Tensor& out, Upsampling* upsampling);

// upsample_bilinear2d of uint8 images, in the same fixed-point numbers as eager.
Status upsample_bilinear_uint8(KernelContext& ctx, const Tensor& in, const Upsampling& upsampling,
                               bool align_corners, Tensor& out);

}  // namespace rushlight::kernels
