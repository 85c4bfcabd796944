// What dense convolutions of floats and of bytes share: images whose windows can be read without
// checking edges, and tiles over the rows of their results.
#pragma once

#include <cstring>

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/loops/images/pixels.h"
#include "rushlight/engine/loops/rows/bytes.h"
#include "rushlight/engine/loops/rows/copy.h"

namespace rushlight::engine {

// Strides in elements.
template <typename T>
struct Image {
  const T* data = nullptr;
  int64_t row_stride = 0, column_stride = 0, channel_stride = 1;
};

// Sizes of the part of an image that windows read.
inline int64_t reach(int64_t outs, int64_t stride, int64_t kernel, int64_t dilation) {
  return (outs - 1) * stride + (kernel - 1) * dilation + 1;
}
inline int64_t image_height(const ConvGeometry& g) {
  return reach(g.out_height, g.stride_y, g.kernel_y, g.dilation_y);
}
inline int64_t image_width(const ConvGeometry& g) {
  return reach(g.out_width, g.stride_x, g.kernel_x, g.dilation_x);
}
inline bool needs_padding(const ConvGeometry& g) {
  return g.pad_top != 0 || g.pad_left != 0 || image_height(g) > g.in_height ||
         image_width(g) > g.in_width;
}
inline bool is_pointwise(const ConvGeometry& g) {
  return g.kernel_y == 1 && g.kernel_x == 1 && !needs_padding(g);
}

// --- a copy of the image ------------------------------------------------------------------------

template <typename T>
struct PaddedCopy {
  const ConvGeometry* geometry;
  Image<T> in;
  T* out;
  int64_t pixel_stride;  // of the copy: the image's channels, filled up
  uint8_t padding;       // each byte of it
};

template <typename T>
void set_padding(const PaddedCopy<T>& copy, T* out, int64_t pixels) {
  if (pixels <= 0) return;
  std::memset(out, copy.padding, static_cast<size_t>(pixels * copy.pixel_stride) * sizeof(T));
}

inline void gather_pixels(const Image<float>& image, const float* in, int64_t columns,
                          int64_t channels, float* out, int64_t out_stride) {
  pixel_loops().gather(in, image.column_stride, image.channel_stride, columns, channels, out,
                       out_stride);
}
// The channels that fill up a pixel are multiplied by zeros and may hold anything: except at the
// end of a row, whole words are copied, with the bytes that follow.
inline void gather_pixels(const Image<uint8_t>& image, const uint8_t* in, int64_t columns,
                          int64_t channels, uint8_t* out, int64_t out_stride) {
  const int64_t filled = quads_of(channels) * kQuad;
  if (image.channel_stride != 1) {
    for (int64_t c = 0; c < channels; c += kQuad) {
      const uint8_t* planes[kQuad];
      for (int64_t j = 0; j < kQuad; ++j) {
        planes[j] = in + (c + j < channels ? c + j : c) * image.channel_stride;
      }
      byte_loops().interleave(planes, image.column_stride, columns, out + c, out_stride);
    }
    return;
  }
  int64_t whole = columns - (filled + channels - 1) / channels + 1;
  if (image.column_stride != channels || whole < 0) whole = 0;
  const CopyLoops& loops = copy_loops();
  if (filled == kQuad && out_stride == kQuad) {  // as in first layers
    uint32_t word;
    for (int64_t x = 0; x < whole; ++x) {
      std::memcpy(&word, in + x * channels, sizeof(word));
      std::memcpy(out + x * kQuad, &word, sizeof(word));
    }
  } else {
    loops.runs(in, image.column_stride, out, out_stride, whole, filled);
  }
  loops.runs(in + whole * image.column_stride, image.column_stride, out + whole * out_stride,
             out_stride, columns - whole, channels);
}

template <typename T>
void copy_row(const PaddedCopy<T>& copy, int64_t row) {
  const ConvGeometry& g = *copy.geometry;
  const int64_t width = image_width(g);
  T* out = copy.out + row * width * copy.pixel_stride;
  const int64_t y = row - g.pad_top;
  if (y < 0 || y >= g.in_height) return set_padding(copy, out, width);
  const int64_t left = g.pad_left < width ? g.pad_left : width;
  const int64_t columns = width - left < g.in_width ? width - left : g.in_width;
  const T* in = copy.in.data + y * copy.in.row_stride;
  T* middle = out + left * copy.pixel_stride;
  set_padding(copy, out, left);
  const bool is_dense =
      copy.in.column_stride == copy.pixel_stride && g.in_channels == copy.pixel_stride;
  if (copy.in.channel_stride == 1 && is_dense) {
    std::memcpy(middle, in, static_cast<size_t>(columns * copy.pixel_stride) * sizeof(T));
  } else {
    gather_pixels(copy.in, in, columns, g.in_channels, middle, copy.pixel_stride);
  }
  set_padding(copy, middle + columns * copy.pixel_stride, width - left - columns);
}

template <typename T>
void copy_rows(void* data, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) copy_row(*static_cast<PaddedCopy<T>*>(data), row);
}

// In elements.
inline int64_t padded_size(const ConvGeometry& g, int64_t pixel_stride) {
  return image_height(g) * image_width(g) * pixel_stride;
}

// The image with what lies around it, at `out`, which has room for padded_size().
template <typename T>
Image<T> padded_image(const ConvGeometry& g, const Image<T>& in, T* out, int64_t pixel_stride,
                      uint8_t padding, Workers* workers) {
  PaddedCopy<T> copy = {&g, in, out, pixel_stride, padding};
  const int64_t height = image_height(g);
  share_out(height, work_of({height, image_width(g), g.in_channels}), copy_rows<T>, &copy, workers);
  return {out, image_width(g) * pixel_stride, pixel_stride, 1};
}

// --- tiles over the rows of an image ------------------------------------------------------------

// A tile covers part of one row of results, or two rows if each is as wide as half a tile.
template <typename T>
struct Tiling {
  Image<T> image;
  const ConvGeometry* geometry;
  EvenBlocks row;  // blocks of a row
  bool pairs;

  Tiling(const Image<T>& source, const ConvGeometry& g, int64_t highest)
      : image(source),
        geometry(&g),
        row(g.out_width, highest),
        pairs(g.out_width == kFirstRows && highest >= 2 * kFirstRows) {}
  int64_t blocks() const {
    return pairs ? (geometry->out_height + 1) / 2 : geometry->out_height * row.blocks;
  }
};

// Puts into `tile` where a block of rows lies. Returns the first row after it.
template <typename T, typename Tile>
int64_t place_tile(const void* data, int64_t block, Tile* tile) {
  const auto& tiling = *static_cast<const Tiling<T>*>(data);
  const ConvGeometry& g = *tiling.geometry;
  const int64_t row_stride = tiling.image.row_stride * g.stride_y;
  if (tiling.pairs) {
    const int64_t y = 2 * block;
    tile->rows = y + 1 < g.out_height ? 2 * kFirstRows : kFirstRows;
    tile->a[0] = tiling.image.data + y * row_stride;
    tile->a[1] = tile->a[0] + row_stride;
    return y * kFirstRows + tile->rows;
  }
  const int64_t y = block / tiling.row.blocks;
  const int64_t in_row = block - y * tiling.row.blocks;
  const int64_t x = tiling.row.start(in_row);
  tile->rows = tiling.row.height(in_row);
  tile->a[0] = tiling.image.data + y * row_stride + x * tile->a_stride;
  tile->a[1] = tile->a[0] + kFirstRows * tile->a_stride;
  return y * g.out_width + x + tile->rows;
}

// Whether the pixels of a 1 by 1 convolution have one stride throughout, like the rows of a
// product.
template <typename Conv>
bool pixels_follow(const Conv& conv) {
  const ConvGeometry& g = conv.geometry;
  const int64_t row = g.out_width * conv.in_column_stride * g.stride_x;
  return conv.in_row_stride * g.stride_y == row &&
         (g.batch == 1 || conv.in_batch_stride == g.out_height * row);
}

// --- groups -------------------------------------------------------------------------------------

constexpr int64_t kManyGroups = 4;  // from this many on, each thread takes a group

// Calls convolve_group(group, workers) for each group of each image. `terms` are those of one sum.
template <typename Body>
void for_each_group(const ConvGeometry& g, int64_t terms, Workers* workers, Body body) {
  if (g.groups < kManyGroups) {
    for (int64_t group = 0; group < g.groups; ++group) body(group, workers);
    return;
  }
  share_out(
      g.groups, work_of({g.out_height, g.out_width, g.out_channels, terms}),
      [](void* data, int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          (*static_cast<Body*>(data))(group, static_cast<Workers*>(nullptr));
        }
      },
      &body, workers);
}

}  // namespace rushlight::engine
