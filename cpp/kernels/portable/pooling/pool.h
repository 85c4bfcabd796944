// The geometry of pooling in two or three dimensions: the input elements that a window covers along
// each axis. With two dimensions the depth is an axis of size 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

// The input positions from begin to end, and the divisor of the mean, which may include padding.
struct PoolWindow {
  int64_t begin;
  int64_t end;
  int64_t count;
};

// The input positions that the taps of a window read; they are `spacing` apart.
struct PoolTaps {
  int64_t begin;
  int64_t end;
  int64_t spacing;
};

// One spatial axis. All numbers except the sizes of the tensors come from the program.
struct PoolAxis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  bool adaptive = false;  // windows divide the input evenly; only in and out are used
  bool count_padding = false;

  // The window of output `o`, limited to the input. `dilation` must be 1.
  PoolWindow window(int64_t o) const;
  // The position of the first tap of output `o`; it may be in the padding.
  int64_t start(int64_t o) const { return o * stride - padding; }
  // The taps of output `o` that are inside of the input.
  PoolTaps taps(int64_t o) const;
  // The outputs for which this tap is inside of the input are lo to hi - 1.
  void outputs_inside(int64_t tap, int64_t* lo, int64_t* hi) const;
  // Only outputs from lo to hi - 1 can have windows that cover this input position.
  void outputs_over(int64_t position, int64_t* lo, int64_t* hi) const;
};

// A pooling of [N, C, H, W] or [C, H, W], also with a depth before H: the sizes and strides, in
// elements, of both tensors.
struct Pooling {
  PoolAxis d;
  PoolAxis h;
  PoolAxis w;
  int64_t n = 1;
  int64_t c = 1;
  int64_t in_n = 0, in_c = 0, in_d = 0, in_h = 0, in_w = 0;
  int64_t out_n = 0, out_c = 0, out_d = 0, out_h = 0, out_w = 0;

  // Axis k of `spatial` axes, the outermost first.
  PoolAxis& axis(size_t k, size_t spatial) {
    PoolAxis* const axes[] = {&d, &h, &w};
    return *axes[3 - spatial + k];
  }
  // Sets the strides. The output must have its final sizes.
  void take_strides(const Tensor& in, const Tensor& out, size_t spatial);
  // The number of output lines along W.
  int64_t lines() const { return n * c * d.out * h.out; }
};

// The position of a line of outputs: the output's depth and row, and the offsets in the input of
// its first element and of its channel (of channel 0 for a line of whole pixels).
struct PoolLine {
  int64_t d;
  int64_t h;
  int64_t from;
  int64_t to;
};
// Line i of p.lines(), or line i of the p.n * p.d.out * p.h.out lines of whole pixels.
PoolLine channel_line(const Pooling& p, int64_t i);
PoolLine pixel_line(const Pooling& p, int64_t i);

// The number of lines to process at a time, if each needs work for this many elements.
int64_t pool_grain(int64_t line_work);

// The arguments of a pooling; `dilation` may be nullptr.
struct PoolArguments {
  const EValue& kernel;
  const EValue& stride;
  const EValue& padding;
  const EValue* dilation;
  bool ceil_mode;
};
// Reads the arguments of a pooling of 2 or 3 spatial dimensions and computes the shape of the
// result. Returns InvalidArgument and names the argument if one is out of range or the result would
// be empty.
Status read_pooling(KernelContext& ctx, const Tensor& in, size_t spatial,
                    const PoolArguments& arguments, Pooling* pooling, Shape* shape);
// The same for an adaptive pooling to these sizes, which must fit int32 and not be negative. If all
// windows have one size, they are described by kernel and stride.
Status adaptive_windows(KernelContext& ctx, const Tensor& in, size_t spatial, const int64_t* sizes,
                        Pooling* pooling, Shape* shape);
// The same for an output_size argument.
Status read_adaptive(KernelContext& ctx, const Tensor& in, size_t spatial, const EValue& size,
                     Pooling* pooling, Shape* shape);

// Returns InvalidArgument or NotSupported unless the gradients of a pooling of `self` have one
// floating type, and the gradient of the outputs has their shape.
Status check_pool_gradient(KernelContext& ctx, const Tensor& self, const Shape& shape,
                           const Tensor& grad, const Tensor& result);
// Returns InvalidArgument unless `tensor` (called `name` in the message) has the shape of the
// outputs.
Status check_pool_shape(KernelContext& ctx, const char* name, const Tensor& tensor,
                        const Shape& shape);

}  // namespace rushlight::kernels
