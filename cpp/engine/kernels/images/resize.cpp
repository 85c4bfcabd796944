#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {
namespace {

// The two pixels between which a result lies, and the weight of the second.
struct Between {
  int64_t first;
  int64_t second;
  float weight;
};

Between between(int64_t i, int64_t in, int64_t out, bool align_corners) {
  float at = 0;
  if (align_corners) {
    at = out > 1
             ? static_cast<float>(i) * (static_cast<float>(in - 1) / static_cast<float>(out - 1))
             : 0;
  } else {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    at = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
  }
  if (at < 0) at = 0;
  int64_t first = static_cast<int64_t>(at);
  if (first > in - 1) first = in - 1;
  const int64_t second = first + 1 < in ? first + 1 : first;
  return {first, second, at - static_cast<float>(first)};
}

void resize_row(const Resize& r, int64_t row) {
  const ConvGeometry& g = r.geometry;
  const int64_t channels = g.in_channels;
  const int64_t in_row = g.in_width * channels;
  const Between y = between(row % g.out_height, g.in_height, g.out_height, r.align_corners);
  const float* image = r.in + row / g.out_height * g.in_height * in_row;
  const float* upper = image + y.first * in_row;
  const float* lower = image + y.second * in_row;
  float* out = r.out + row * g.out_width * channels;
  for (int64_t i = 0; i < g.out_width; ++i, out += channels) {
    const Between x = between(i, g.in_width, g.out_width, r.align_corners);
    const int64_t left = x.first * channels;
    const int64_t right = x.second * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float top = upper[left + c] + (upper[right + c] - upper[left + c]) * x.weight;
      const float bottom = lower[left + c] + (lower[right + c] - lower[left + c]) * x.weight;
      out[c] = top + (bottom - top) * y.weight;
    }
  }
}

void resize_rows(void* data, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) resize_row(*static_cast<const Resize*>(data), row);
}

}  // namespace

void resize_bilinear(const Resize& resize, Workers* workers) {
  const ConvGeometry& g = resize.geometry;
  Resize job = resize;
  const int64_t rows = g.batch * g.out_height;
  share_out(rows, work_of({rows, g.out_width, g.in_channels, 8}), resize_rows, &job, workers);
}

}  // namespace rushlight::engine
