// Convolution of float32 as matrix products, one for each image and group: weights [out channels,
// K] times the unrolled input [K, pixels]. The unrolled input is packed one panel at a time and is
// never stored as a whole.
#include <algorithm>
#include <numeric>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/linalg/gemm.h"

namespace rushlight::kernels {
namespace {

// True if the kernel is a single tap that reads the pixel itself.
bool is_pointwise(const Conv& conv) {
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    if (conv.weight.size[s] != 1 || conv.stride[s] != 1 || conv.padding[s] != 0) return false;
  }
  return true;
}

Window window_of(const Conv& conv) {
  Window w;
  w.data = conv.input.tensor->as<float>();
  w.size = conv.input.tensor->numel;
  w.channel_stride = conv.input.inner_stride;
  w.channels = static_cast<int32_t>(conv.group_in);
  w.channels_innermost = w.channel_stride == 1 && conv.group_in > 1;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    w.strides[s] = conv.input.strides[s];
    w.in[s] = conv.input.size[s];
    w.out[s] = conv.out.size[s];
    w.kernel[s] = conv.weight.size[s];
    w.stride[s] = conv.stride[s];
    w.padding[s] = conv.padding[s];
    w.dilation[s] = conv.dilation[s];
  }
  return w;
}

WeightTaps weight_taps(const Conv& conv, const Window& window, int64_t channel_stride) {
  WeightTaps taps;
  taps.channel_stride = channel_stride;
  taps.channels = window.channels;
  taps.channels_innermost = window.channels_innermost;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    taps.tap_strides[s] = conv.weight.strides[s];
    taps.taps[s] = window.kernel[s];
  }
  return taps;
}

// The stride between consecutive k, which number the (channel, tap) pairs, or 0 if it is not
// constant.
int64_t single_stride(const WeightTaps& w) {
  int64_t stride = 0;
  int64_t next = 0;  // required stride of the next greater dimension
  const auto follow = [&](int64_t size, int64_t dim_stride) {
    if (size == 1) return true;
    if (stride == 0) stride = next = dim_stride;
    const bool fits = dim_stride == next;
    next *= size;
    return fits;
  };
  bool fits = !w.channels_innermost || follow(w.channels, w.channel_stride);
  for (size_t s = kMaxSpatial; s-- > 0;) fits = fits && follow(w.taps[s], w.tap_strides[s]);
  fits = fits && (w.channels_innermost || follow(w.channels, w.channel_stride));
  if (!fits) return 0;
  return stride == 0 ? 1 : stride;
}

// The parts of the product that are equal for all images and groups.
Product product_of(const Conv& conv, const WeightTaps& taps, int64_t out_stride) {
  Product p;
  p.m = conv.group_out;
  p.k = conv.group_in * int64_t{taps.taps[0]} * taps.taps[1] * taps.taps[2];
  p.a.i_stride = out_stride;
  p.a.k_stride = single_stride(taps);
  if (p.a.k_stride == 0) p.a.weights = &taps;
  p.c_row = conv.out.inner_stride;
  return p;
}

// Runs the product for every image and group. `weights` points to the weights of the first group.
void run_all(const Workspace& work, const Conv& conv, Product p, Window* window,
             const float* weights, int64_t weight_group_stride, int64_t out_offset) {
  float* const out = conv.out.tensor->as<float>() + out_offset;
  const float* input = conv.input.tensor->as<float>();
  for (int64_t n = 0; n < conv.batch; ++n) {
    for (int64_t g = 0; g < conv.groups; ++g) {
      const int64_t origin =
          n * conv.input.outer_stride + g * conv.group_in * conv.input.inner_stride;
      if (window != nullptr) {
        window->origin = origin;
      } else {
        p.b.data = input + origin;
      }
      p.a.data = weights + g * weight_group_stride;
      p.c = out + n * conv.out.outer_stride + g * conv.group_out * conv.out.inner_stride;
      if (conv.bias != nullptr) {
        p.add = conv.bias->as<float>() + g * conv.group_out;
        p.add_row = 1;
        p.add_col = 0;
      }
      multiply(work, p);
    }
  }
}

// Sets the layout of C's columns: a constant stride, or a grid.
void place_columns(const ConvTensor& out, Grid* grid, Product* p) {
  if (pixels_in_line(out)) {
    p->c_col = pixel_stride(out);
    return;
  }
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    grid->size[s] = out.size[s];
    grid->strides[s] = out.strides[s];
  }
  p->grid = grid;
}

// The taps of a transposed kernel that contribute to one phase of the output along one dimension,
// and the output pixels of that phase. For tap t, output phase + stride * q reads input
// q + (phase + padding - t * dilation) / stride, where that division is exact.
struct Phase {
  int32_t first_tap = 0;
  int32_t tap_stride = 1;
  int32_t taps = 0;
  int32_t shift = 0;  // input position of the first tap, relative to q
  int32_t dilation = 0;
  int32_t pixels = 0;
};

Phase phase_of(const Conv& conv, size_t s, int32_t phase) {
  const int32_t stride = conv.stride[s];
  const int32_t dilation = conv.dilation[s];
  const int32_t common = std::gcd(stride, dilation);
  Phase p;
  p.tap_stride = stride / common;
  p.dilation = -(dilation / common);
  p.pixels = (conv.out.size[s] - phase + stride - 1) / stride;
  const int32_t start = phase + conv.padding[s];
  while (p.first_tap < p.tap_stride && (start - p.first_tap * dilation) % stride != 0)
    ++p.first_tap;
  if (p.first_tap == p.tap_stride || p.first_tap >= conv.weight.size[s]) return p;
  p.taps = (conv.weight.size[s] - p.first_tap + p.tap_stride - 1) / p.tap_stride;
  p.shift = (start - p.first_tap * dilation) / stride;
  return p;
}

void run_phase(const Workspace& work, const Conv& conv, const int32_t* phase) {
  Window window = window_of(conv);
  WeightTaps taps = weight_taps(conv, window, conv.weight.outer_stride);
  Grid grid;
  bool is_unit_stride = true;  // true if the phase is the whole output
  int64_t weight_offset = 0;
  int64_t out_offset = 0;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    const Phase p = phase_of(conv, s, phase[s]);
    is_unit_stride = is_unit_stride && conv.stride[s] == 1;
    window.out[s] = p.pixels;
    window.kernel[s] = taps.taps[s] = p.taps;
    window.stride[s] = 1;
    window.padding[s] = -p.shift;
    window.dilation[s] = p.dilation;
    taps.tap_strides[s] = conv.weight.strides[s] * p.tap_stride;
    weight_offset += conv.weight.strides[s] * p.first_tap;
    out_offset += conv.out.strides[s] * phase[s];
    grid.size[s] = p.pixels;
    grid.strides[s] = conv.out.strides[s] * conv.stride[s];
  }
  // If no tap contributes to the phase, p.k is 0, and the phase gets the bias alone.
  Product p = product_of(conv, taps, conv.weight.inner_stride);
  p.n = grid.size[0] * grid.size[1] * grid.size[2];
  p.b.window = &window;
  p.b.pack_window = window_loops().pack;
  if (is_unit_stride) {
    place_columns(conv.out, &grid, &p);
  } else {
    p.grid = &grid;
  }
  if (p.k == 0) weight_offset = 0;
  const float* weights = conv.weight.tensor->as<float>() + weight_offset;
  run_all(work, conv, p, &window, weights, conv.group_in * conv.weight.outer_stride, out_offset);
}

}  // namespace

bool pixels_in_line(const ConvTensor& t) {
  int64_t stride = t.strides[2];
  for (size_t s = kMaxSpatial; s-- > 0;) {
    if (t.size[s] > 1 && t.strides[s] != stride) return false;
    stride = (t.size[s] > 1 ? t.strides[s] : stride) * t.size[s];
  }
  return true;
}

int64_t pixel_stride(const ConvTensor& t) {
  for (size_t s = kMaxSpatial; s-- > 0;) {
    if (t.size[s] > 1) return t.strides[s];
  }
  return 1;
}

void conv_gemm(KernelContext& ctx, const Conv& conv) {
  const Workspace work(ctx);
  Window window = window_of(conv);
  const bool pointwise = is_pointwise(conv) && pixels_in_line(conv.input);
  const WeightTaps taps = weight_taps(conv, window, conv.weight.inner_stride);
  Grid grid;
  Product p = product_of(conv, taps, conv.weight.outer_stride);
  p.n = conv.pixels();
  place_columns(conv.out, &grid, &p);
  if (pointwise) {
    p.b.i_stride = pixel_stride(conv.input);
    p.b.k_stride = conv.input.inner_stride;
  } else {
    p.b.window = &window;
    p.b.pack_window = window_loops().pack;
  }
  run_all(work, conv, p, pointwise ? nullptr : &window, conv.weight.tensor->as<float>(),
          conv.group_out * conv.weight.outer_stride, 0);
}

void conv_transposed_gemm(KernelContext& ctx, const Conv& conv) {
  const Workspace work(ctx);
  int32_t phase[kMaxSpatial];
  for (phase[0] = 0; phase[0] < std::min(conv.stride[0], conv.out.size[0]); ++phase[0]) {
    for (phase[1] = 0; phase[1] < std::min(conv.stride[1], conv.out.size[1]); ++phase[1]) {
      for (phase[2] = 0; phase[2] < std::min(conv.stride[2], conv.out.size[2]); ++phase[2]) {
        run_phase(work, conv, phase);
      }
    }
  }
}

}  // namespace rushlight::kernels
