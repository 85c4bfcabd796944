// Depthwise convolution of float32. Contiguous: bands of each plane are copied into padded rows, so
// that the loops need no test for edges. Channels-last: vectors run along the channels.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/conv.h"
#include "rushlight/kernels/portable/gemm.h"
#include "rushlight/kernels/portable/loops/depthwise.h"

namespace rushlight::kernels {
namespace {

// The last two spatial dimensions; the first has size 1.
constexpr size_t kY = 1;
constexpr size_t kX = 2;
constexpr int64_t kMaxTaps = 64;

int64_t reach(const Conv& conv, size_t s) {
  return int64_t{conv.dilation[s]} * (conv.weight.size[s] - 1) + 1;
}

// A row of input with its padding, as long as the output row needs it.
int64_t padded_line(const Conv& conv) {
  return (int64_t{conv.out.size[kX]} - 1) * conv.stride[kX] + reach(conv, kX);
}

// Copies padded input rows y0.. (in padded coordinates) of one plane.
void copy_band(const Conv& conv, const float* plane, int64_t y0, int64_t rows, float* band) {
  const int64_t line = padded_line(conv);
  const int64_t left = std::min<int64_t>(conv.padding[kX], line);
  const int64_t width = std::min<int64_t>(conv.input.size[kX], line - left);
  for (int64_t r = 0; r < rows; ++r) {
    float* to = band + r * line;
    const int64_t y = y0 + r - conv.padding[kY];
    if (y < 0 || y >= conv.input.size[kY]) {
      std::fill(to, to + line, 0.0f);
      continue;
    }
    std::fill(to, to + left, 0.0f);
    std::memcpy(to + left, plane + y * conv.input.step[kY],
                static_cast<size_t>(width) * sizeof(float));
    std::fill(to + left + width, to + line, 0.0f);
  }
}

void run_plane(const Conv& conv, const Workspace& work, int64_t band_rows, const float* input,
               const float* weights, float bias, float* out) {
  const DepthwiseLoops& loops = depthwise_loops();
  const int64_t line = padded_line(conv);
  for (int64_t y0 = 0; y0 < conv.out.size[kY]; y0 += band_rows) {
    const int64_t rows = std::min<int64_t>(band_rows, conv.out.size[kY] - y0);
    const int64_t needed = (rows - 1) * conv.stride[kY] + reach(conv, kY);
    copy_band(conv, input, y0 * conv.stride[kY], needed, work.data());
    for (int64_t r = 0; r < rows; ++r) {
      loops.row(work.data() + r * conv.stride[kY] * line, line * conv.dilation[kY], weights,
                conv.weight.size[kY], conv.weight.size[kX], conv.stride[kX], conv.dilation[kX],
                bias, out + (y0 + r) * conv.out.step[kY], conv.out.size[kX]);
    }
  }
}

bool contiguous_planes(const Conv& conv) {
  const auto dense = [](const ConvTensor& t) {
    return (t.step[kX] == 1 || t.size[kX] == 1) && (t.step[kY] == t.size[kX] || t.size[kY] == 1);
  };
  return dense(conv.input) && dense(conv.out) && dense(conv.weight);
}

bool run_contiguous(const Workspace& work, const Conv& conv) {
  const int64_t line = padded_line(conv);
  const int64_t stride = conv.stride[kY];
  // Rows of output whose input fits into a quarter of the workspace, or else all of it.
  const auto rows_in = [&](int64_t floats) {
    return ((floats - kRowSlack) / line - reach(conv, kY)) / stride + 1;
  };
  if ((work.size() - kRowSlack) / line < reach(conv, kY)) return false;
  const int64_t band =
      std::max(rows_in(work.size() / 4), std::min<int64_t>(rows_in(work.size()), 8));
  const float* weights = conv.weight.tensor->as<float>();
  for (int64_t n = 0; n < conv.batch; ++n) {
    for (int64_t c = 0; c < conv.groups; ++c) {
      run_plane(
          conv, work, std::max<int64_t>(band, 1),
          conv.input.tensor->as<float>() + n * conv.input.outer_step + c * conv.input.inner_step,
          weights + c * conv.weight.outer_step,
          conv.bias != nullptr ? conv.bias->as<float>()[c] : 0.0f,
          conv.out.tensor->as<float>() + n * conv.out.outer_step + c * conv.out.inner_step);
    }
  }
  return true;
}

// The input under each tap at one output pixel, or nullptr where it lies in the padding.
void find_taps(const Conv& conv, const float* image, int64_t y, int64_t x, const float** taps) {
  for (int64_t i = 0; i < conv.weight.size[kY]; ++i) {
    const int64_t in_y = y * conv.stride[kY] - conv.padding[kY] + i * conv.dilation[kY];
    for (int64_t j = 0; j < conv.weight.size[kX]; ++j) {
      const int64_t in_x = x * conv.stride[kX] - conv.padding[kX] + j * conv.dilation[kX];
      const bool inside =
          in_y >= 0 && in_y < conv.input.size[kY] && in_x >= 0 && in_x < conv.input.size[kX];
      *taps++ = inside ? image + in_y * conv.input.step[kY] + in_x * conv.input.step[kX] : nullptr;
    }
  }
}

// Channels from..to, a multiple of the lanes, of one image.
void run_channels(const Conv& conv, const float* packed, int64_t n, int64_t from, int64_t count) {
  const DepthwiseLoops& loops = depthwise_loops();
  const float* image = conv.input.tensor->as<float>() + n * conv.input.outer_step + from;
  const float* bias = conv.bias != nullptr ? conv.bias->as<float>() + from : nullptr;
  const float* taps[kMaxTaps];
  for (int64_t y = 0; y < conv.out.size[kY]; ++y) {
    for (int64_t x = 0; x < conv.out.size[kX]; ++x) {
      find_taps(conv, image, y, x, taps);
      float* out = conv.out.tensor->as<float>() + n * conv.out.outer_step + y * conv.out.step[kY] +
                   x * conv.out.step[kX] + from;
      loops.pixel(taps, packed, static_cast<int>(conv.taps()), bias, out, count);
    }
  }
}

bool run_channels_last(const Workspace& work, const Conv& conv) {
  const int64_t taps = conv.taps();
  const int64_t lanes = depthwise_loops().lanes;
  const int64_t fit = work.size() / taps / lanes * lanes;
  if (conv.groups % lanes != 0 || taps > kMaxTaps || fit == 0) return false;
  for (int64_t from = 0; from < conv.groups; from += fit) {
    const int64_t count = std::min(fit, conv.groups - from);
    for (int64_t t = 0; t < taps; ++t) {
      const float* weights = conv.weight.tensor->as<float>() + from * conv.weight.outer_step +
                             t / conv.weight.size[kX] * conv.weight.step[kY] +
                             t % conv.weight.size[kX] * conv.weight.step[kX];
      for (int64_t c = 0; c < count; ++c) {
        work.data()[t * count + c] = weights[c * conv.weight.outer_step];
      }
    }
    for (int64_t n = 0; n < conv.batch; ++n) run_channels(conv, work.data(), n, from, count);
  }
  return true;
}

}  // namespace

bool conv_depthwise(KernelContext& ctx, const Conv& conv) {
  if (conv.weight.size[0] != 1 || conv.input.size[0] != 1 || conv.padding[0] != 0) return false;
  const Workspace work(ctx);
  if (contiguous_planes(conv) && run_contiguous(work, conv)) return true;
  return conv.input.inner_step == 1 && conv.out.inner_step == 1 && run_channels_last(work, conv);
}

}  // namespace rushlight::kernels
