// Convolution of small groups whose channels are adjacent in memory. Vectors run along a group's
// output channels, and a tile of some pixels stays in registers for all taps.
#include <algorithm>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/loops/convolution/channels.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kMaxTaps = 64;
constexpr int64_t kMaxOut = 32;  // output channels of a group; more fill a matrix product's vectors

// The taps that read the input (are not padding) for the pixels of a line. In a transposed
// convolution these pixels are one stride apart.
struct LineTaps {
  int64_t count = 0;
  const float* input[kMaxTaps];
  const float* weights[kMaxTaps];
};

void find_taps(const Conv& conv, int64_t d, int64_t h, int64_t w, LineTaps* taps) {
  const int64_t weights = conv.group_in * conv.group_out;
  taps->count = 0;
  for (int64_t t = 0; t < conv.taps(); ++t) {
    const int64_t line = t / conv.weight.size[2];
    const int64_t z = input_position(conv, 0, d, line / conv.weight.size[1]);
    const int64_t y = input_position(conv, 1, h, line % conv.weight.size[1]);
    const int64_t x = input_position(conv, 2, w, t % conv.weight.size[2]);
    if (z < 0 || y < 0 || x < 0) continue;
    taps->input[taps->count] = conv.input.tensor->as<float>() + z * conv.input.strides[0] +
                               y * conv.input.strides[1] + x * conv.input.strides[2];
    taps->weights[taps->count++] = conv.packed + t * weights;
  }
}

// Adds the taps' products to pixels `first`, `first` + `stride`, … of `line`.
void add_taps(const Conv& conv, const LineTaps& taps, int64_t first, int64_t stride, float* line) {
  const ChannelLoops& loops = channel_loops();
  const int64_t width = kMaxChannelVectors * loops.lanes;
  const int64_t pixels = (conv.out.size[2] - first + stride - 1) / stride;
  ChannelTile t{};
  t.terms = taps.count;
  t.a = taps.input;
  t.b = taps.weights;
  t.a_row = (conv.transposed ? 1 : conv.stride[2]) * conv.input.strides[2];
  t.a_stride = 1;
  t.b_stride = conv.group_out;
  t.k = conv.group_in;
  t.sums_stride = stride * conv.out.strides[2];
  for (int64_t g = 0; g < conv.groups; ++g) {
    for (int64_t j = 0; j < conv.group_out; j += width) {
      t.columns = std::min(width, conv.group_out - j);
      t.b_offset = g * conv.taps() * conv.group_in * conv.group_out + j;
      const auto* const tiles = loops.tile[t.columns > loops.lanes ? 1 : 0];
      for (int64_t p = 0; p < pixels; p += loops.rows) {
        t.a_offset = p * t.a_row + g * conv.group_in;
        t.sums = line + first * conv.out.strides[2] + p * t.sums_stride + g * conv.group_out + j;
        tiles[std::min(loops.rows, pixels - p) - 1](t);
      }
    }
  }
}

void fill_bias(const Conv& conv, float* line) {
  const int64_t channels = conv.groups * conv.group_out;
  for (int64_t w = 0; w < conv.out.size[2]; ++w) {
    float* const to = line + w * conv.out.strides[2];
    if (conv.bias != nullptr) {
      std::copy_n(conv.bias->as<float>(), channels, to);
    } else {
      std::fill_n(to, channels, 0.0f);
    }
  }
}

}  // namespace

bool wants_channels(const Conv& conv) {
  const bool grouped = conv.groups > 1 && conv.group_in * conv.group_out > 1;
  return grouped && conv.input.inner_stride == 1 && conv.group_out <= kMaxOut &&
         conv.taps() <= kMaxTaps;
}

void pack_weights(const Conv& conv, int64_t first, int64_t groups, float* packed) {
  const ConvTensor& w = conv.weight;
  const int64_t outs = conv.group_out;
  const int64_t group_stride = (conv.transposed ? conv.group_in : outs) * w.outer_stride;
  int64_t stride = conv.group_in * outs * conv.taps();
  CopyBlock block;
  block.push(groups, group_stride, stride);
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    stride /= w.size[s];
    block.push(w.size[s], w.strides[s], stride);
  }
  block.push(conv.group_in, conv.transposed ? w.outer_stride : w.inner_stride, outs);
  block.push(outs, conv.transposed ? w.inner_stride : w.outer_stride, 1);
  converting_copy(element_at(*w.tensor, first * group_stride), w.tensor->dtype, packed,
                  DType::Float32, block);
}

void conv_channels(const Conv& conv) {
  const int64_t stride = conv.transposed ? std::min(conv.stride[2], conv.out.size[2]) : 1;
  LineTaps taps;
  for (int64_t d = 0; d < conv.out.size[0]; ++d) {
    for (int64_t h = 0; h < conv.out.size[1]; ++h) {
      float* const line =
          conv.out.tensor->as<float>() + d * conv.out.strides[0] + h * conv.out.strides[1];
      fill_bias(conv, line);
      for (int64_t first = 0; first < stride; ++first) {
        find_taps(conv, d, h, first, &taps);
        if (taps.count > 0) add_taps(conv, taps, first, stride, line);
      }
    }
  }
}

void copy_box(const ConvTensor& from, const ChannelBox& box, float* to) {
  CopyBlock block;
  int64_t stride = box.channels;
  int64_t source = box.offset;
  int64_t start = 0;
  int64_t whole = box.channels;
  int64_t inside = box.channels;
  for (size_t s = kMaxSpatial; s-- > 0;) {
    const int64_t begin = std::max<int64_t>(-box.first[s], 0);
    const int64_t end = std::min(box.size[s], from.size[s] - box.first[s]);
    const int64_t count = std::max<int64_t>(end - begin, 0);
    block.push(count, from.strides[s], stride);
    source += (box.first[s] + begin) * from.strides[s];
    start += begin * stride;
    stride *= box.size[s];
    whole *= box.size[s];
    inside *= count;
  }
  block.push(box.channels, 1, 1);
  if (inside < whole) std::fill_n(to, whole, 0.0f);
  if (inside == 0) return;
  converting_copy(element_at(*from.tensor, source), from.tensor->dtype, to + start, DType::Float32,
                  block);
}

}  // namespace rushlight::kernels
