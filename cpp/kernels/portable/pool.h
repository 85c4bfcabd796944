// The geometry of two-dimensional pooling: which input elements a window covers, along each axis.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// Input positions from begin to end, and the number that a mean divides by (padding may count).
struct PoolWindow {
  int64_t begin;
  int64_t end;
  int64_t count;
};

// One spatial axis. Every number but the sizes of the tensors comes from the program.
struct PoolAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  bool adaptive = false;  // windows share the input out evenly; the rest is not used
  bool count_padding = false;

  // The window of output `o`, cut off at the input's ends. `dilation` must be 1.
  PoolWindow window(int64_t o) const;
  // The position of the first tap of output `o`, which may lie in the padding.
  int64_t start(int64_t o) const { return o * stride - padding; }
  // The first position of output `o` that a tap meets inside of the input.
  int64_t first_inside(int64_t o) const;
  // The outputs whose tap lies inside of the input are those from lo to hi.
  void outputs_inside(int64_t tap, int64_t* lo, int64_t* hi) const;
};

// A pooling of [N, C, H, W] or [C, H, W]: sizes and strides (in elements) of both tensors.
struct Pooling {
  PoolAxis h;
  PoolAxis w;
  int64_t n = 1;
  int64_t c = 1;
  int64_t in_n = 0, in_c = 0, in_h = 0, in_w = 0;
  int64_t out_n = 0, out_c = 0, out_h = 0, out_w = 0;

  // Sets the strides, once the output has its final sizes.
  void take_strides(const Tensor& in, const Tensor& out);
};

// Reads kernel_size, stride and padding (and dilation, unless nullptr) and works out the shape of
// the result. InvalidArgument, naming the argument, if one is out of range or the result would be
// empty.
Status read_pooling(KernelContext& ctx, const Tensor& in, const EValue& kernel,
                    const EValue& stride, const EValue& padding, const EValue* dilation,
                    bool ceil_mode, Pooling* pooling, Shape* shape);

// InvalidArgument unless `in` has shape [N, C, H, W] or [C, H, W] with only N possibly 0, and few
// enough pixels for 32-bit positions.
Status check_images(KernelContext& ctx, const Tensor& in);

}  // namespace rushlight::kernels
