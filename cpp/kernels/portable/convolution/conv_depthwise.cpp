// Depthwise convolution of float32. In contiguous tensors, bands of each plane are copied into
// padded rows, so that the loops need no checks at the edges. In channels-last tensors, vectors run
// along the channels.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/linalg/gemm.h"
#include "rushlight/kernels/portable/loops/convolution/depthwise.h"

namespace rushlight::kernels {
namespace {

// The last two spatial dimensions; the first has size 1.
constexpr size_t kY = 1;
constexpr size_t kX = 2;
constexpr int64_t kMaxTaps = 64;
constexpr int kBandShares = 4;  // each of these shares of the workspace holds one band

int64_t reach(const Conv& conv, size_t s) {
  return int64_t{conv.dilation[s]} * (conv.weight.size[s] - 1) + 1;
}

// The length of a padded input row, as far as the output row reads it.
int64_t padded_line(const Conv& conv) {
  return (int64_t{conv.out.size[kX]} - 1) * conv.stride[kX] + reach(conv, kX);
}

// Copies `rows` padded input rows of one plane, starting at row y0 in padded coordinates.
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
    std::memcpy(to + left, plane + y * conv.input.strides[kY],
                static_cast<size_t>(width) * sizeof(float));
    std::fill(to + left + width, to + line, 0.0f);
  }
}

// Computes `rows` output rows of channel c of image n, starting at row y0. With `mirror` the taps
// are read in reverse order.
void run_band(const Conv& conv, bool mirror, int64_t n, int64_t c, int64_t y0, int64_t rows,
              float* memory) {
  const DepthwiseLoops& loops = depthwise_loops();
  const int64_t line = padded_line(conv);
  const float* plane =
      conv.input.tensor->as<float>() + n * conv.input.outer_stride + c * conv.input.inner_stride;
  const float* weights = conv.weight.tensor->as<float>() + c * conv.weight.outer_stride;
  float mirrored[kMaxTaps];
  if (mirror) {
    std::reverse_copy(weights, weights + conv.taps(), mirrored);
    weights = mirrored;
  }
  const float bias = conv.bias != nullptr ? conv.bias->as<float>()[c] : 0.0f;
  float* out = conv.out.tensor->as<float>() + n * conv.out.outer_stride + c * conv.out.inner_stride;
  const int64_t needed = (rows - 1) * conv.stride[kY] + reach(conv, kY);
  copy_band(conv, plane, y0 * conv.stride[kY], needed, memory);
  for (int64_t r = 0; r < rows; ++r) {
    loops.row(memory + r * conv.stride[kY] * line, line * conv.dilation[kY], weights,
              conv.weight.size[kY], conv.weight.size[kX], conv.stride[kX], conv.dilation[kX], bias,
              out + (y0 + r) * conv.out.strides[kY], conv.out.size[kX]);
  }
}

// The number of output rows to compute at a time, each with this number of channels.
int64_t row_grain(const Conv& conv, int64_t channels) {
  constexpr int64_t kProducts = kProductGrain / 4;
  return kProducts / (conv.out.size[kX] * conv.taps() * channels) + 1;
}

bool contiguous_planes(const Conv& conv) {
  const auto dense = [](const ConvTensor& t) {
    return (t.strides[kX] == 1 || t.size[kX] == 1) &&
           (t.strides[kY] == t.size[kX] || t.size[kY] == 1);
  };
  return dense(conv.input) && dense(conv.out) && dense(conv.weight);
}

bool run_contiguous(const Workspace& work, const Conv& conv, bool mirror) {
  const int64_t line = padded_line(conv);
  const int64_t stride = conv.stride[kY];
  // The number of output rows whose input fits into this memory.
  const auto rows_in = [&](int64_t floats) {
    const int64_t spare = (floats - kRowSlack) / line - reach(conv, kY);
    return spare < 0 ? 0 : spare / stride + 1;
  };
  if (rows_in(work.size()) == 0) return false;
  // One share of the workspace per band is best, but the whole workspace is better than a few rows
  // at a time.
  const int64_t height = conv.out.size[kY];
  const int64_t enough = std::min<int64_t>(8, height);
  const int64_t share_rows = rows_in(Workspace(work, 0, kBandShares).size());
  const int count = share_rows >= enough ? kBandShares : 1;
  const int64_t rows =
      count > 1 ? std::min(share_rows, height) : std::min(rows_in(work.size()), enough);
  const int64_t bands = (height + rows - 1) / rows;
  Shares shares(count);
  const auto run = [&](int64_t begin, int64_t end) {
    const int share = shares.take();
    float* memory = Workspace(work, share, count).data();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / bands;
      const int64_t y0 = i % bands * rows;
      run_band(conv, mirror, plane / conv.groups, plane % conv.groups, y0,
               std::min(rows, height - y0), memory);
    }
    shares.give(share);
  };
  work.context().parallel(conv.batch * conv.groups * bands, row_grain(conv, 1) / rows + 1, run);
  return true;
}

// Finds the input of each tap at one output pixel; nullptr if it is in the padding.
void find_taps(const Conv& conv, const float* image, int64_t y, int64_t x, const float** taps) {
  for (int64_t i = 0; i < conv.weight.size[kY]; ++i) {
    const int64_t in_y = input_position(conv, kY, y, i);
    for (int64_t j = 0; j < conv.weight.size[kX]; ++j) {
      const int64_t in_x = in_y < 0 ? -1 : input_position(conv, kX, x, j);
      *taps++ = in_x >= 0 ? image + in_y * conv.input.strides[kY] + in_x * conv.input.strides[kX]
                          : nullptr;
    }
  }
}

// True if no tap at this position of an output row is in the padding to its left or right. Always
// false for a transposed convolution, where taps do not move along with the position.
bool within_line(const Conv& conv, int64_t x) {
  const int64_t first = x * conv.stride[kX] - conv.padding[kX];
  return !conv.transposed && first >= 0 && first + reach(conv, kX) <= conv.input.size[kX];
}

// Computes `count` channels of output row y of one image, starting at channel `from`.
void run_channels(const Conv& conv, const float* packed, int64_t n, int64_t y, int64_t from,
                  int64_t count) {
  const DepthwiseLoops& loops = depthwise_loops();
  const float* image = conv.input.tensor->as<float>() + n * conv.input.outer_stride + from;
  const float* bias = conv.bias != nullptr ? conv.bias->as<float>() + from : nullptr;
  const float* taps[kMaxTaps];
  const int64_t advance = conv.stride[kX] * conv.input.strides[kX];
  for (int64_t x = 0; x < conv.out.size[kX]; ++x) {
    if (x > 0 && within_line(conv, x - 1) && within_line(conv, x)) {
      for (int64_t t = 0; t < conv.taps(); ++t) taps[t] += taps[t] != nullptr ? advance : 0;
    } else {
      find_taps(conv, image, y, x, taps);
    }
    float* out = conv.out.tensor->as<float>() + n * conv.out.outer_stride +
                 y * conv.out.strides[kY] + x * conv.out.strides[kX] + from;
    loops.pixel(taps, packed, static_cast<int>(conv.taps()), bias, out, count);
  }
}

bool run_channels_last(const Workspace& work, const Conv& conv) {
  const int64_t taps = conv.taps();
  const int64_t fit = work.size() / taps;
  if (taps > kMaxTaps || fit == 0) return false;
  const int64_t parts = (conv.groups + fit - 1) / fit;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t from = conv.groups * part / parts;
    const int64_t count = conv.groups * (part + 1) / parts - from;
    for (int64_t t = 0; t < taps; ++t) {
      const float* weights = conv.weight.tensor->as<float>() + from * conv.weight.outer_stride +
                             t / conv.weight.size[kX] * conv.weight.strides[kY] +
                             t % conv.weight.size[kX] * conv.weight.strides[kX];
      for (int64_t c = 0; c < count; ++c) {
        work.data()[t * count + c] = weights[c * conv.weight.outer_stride];
      }
    }
    const int64_t height = conv.out.size[kY];
    const auto run = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        run_channels(conv, work.data(), i / height, i % height, from, count);
      }
    };
    work.context().parallel(conv.batch * height, row_grain(conv, count), run);
  }
  return true;
}

// Changes a transposed convolution of stride 1 into a plain one whose taps are read in reverse
// order. False if the input would have to be cropped instead of padded.
bool turn_around(Conv* conv) {
  for (const size_t s : {kY, kX}) {
    conv->padding[s] = conv->dilation[s] * (conv->weight.size[s] - 1) - conv->padding[s];
    if (conv->stride[s] != 1 || conv->padding[s] < 0) return false;
  }
  conv->transposed = false;
  return conv->taps() <= kMaxTaps;
}

}  // namespace

bool conv_depthwise(KernelContext& ctx, const Conv& conv) {
  if (conv.weight.size[0] != 1 || conv.input.size[0] != 1 || conv.padding[0] != 0) return false;
  if (conv.out.size[0] != 1) return false;
  const Workspace work(ctx);
  if (contiguous_planes(conv)) {
    Conv plain = conv;
    if ((!conv.transposed || turn_around(&plain)) && run_contiguous(work, plain, conv.transposed)) {
      return true;
    }
  }
  return conv.input.inner_stride == 1 && conv.out.inner_stride == 1 &&
         run_channels_last(work, conv);
}

}  // namespace rushlight::kernels
