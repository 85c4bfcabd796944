// The gradient of a convolution's weights as matrix products. The left operand has an unfolded row
// for each tap and channel of the tensor that the kernel slides over; the right operand has the
// channels of the other tensor. Blocks of pixels of both are converted to the type of the sums.
#include <algorithm>

#include "rushlight/kernels/portable/convolution/conv_gradient.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/reduction/sum_type.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kPixels = 128;    // pixels of a block: a panel of columns this long fits into L1
constexpr int64_t kRows = 144;      // (tap, channel) pairs in a block
constexpr int64_t kFewColumns = 4;  // maximum columns for which dot products are faster than tiles
constexpr int64_t kFewRows = 8;     // maximum rows for which gathering is faster than transposing

// Joins all pixels to one long line, if they follow each other in memory and the kernel is a single
// tap that reads the pixel itself.
void join_lines(Gradient* g) {
  for (const PoolAxis& axis : g->axes) {
    if (axis.kernel != 1 || axis.stride != 1 || axis.padding != 0) return;
  }
  if (!pixels_in_line(g->wide) || !pixels_in_line(g->narrow)) return;
  const int64_t pixels = g->pixels();
  for (PoolAxis& axis : g->axes) axis.in = axis.out = 1;
  g->axes[2].in = g->axes[2].out = pixels;
  g->wide.strides[2] = pixel_stride(g->wide);
  g->narrow.strides[2] = pixel_stride(g->narrow);
}

// The sizes of blocks, chosen so that they fit in `room` elements of memory.
struct Blocks {
  int64_t tile;
  int64_t pixels;
  int64_t height;
  int64_t width;
  bool dots;

  Blocks(const Gradient& g, int64_t tile_width, int64_t room)
      : tile(tile_width),
        pixels(std::min(kPixels, g.pixels())),
        height(std::min(kRows, g.rows())),
        width((std::min(g.columns, static_cast<int64_t>(kChunk)) + tile - 1) / tile * tile),
        dots(g.columns <= kFewColumns) {
    const auto fits = [&] { return pixels * (height + 2 * tile) + height * width <= room; };
    while (!fits() && width > tile) width = (width / tile + 1) / 2 * tile;
    while (!fits() && height > 1) height = (height + 1) / 2;
    while (!fits() && pixels > 1) pixels = (pixels + 1) / 2;
  }

  int64_t down(const Gradient& g) const { return (g.rows() + height - 1) / height; }
  int64_t across(const Gradient& g) const { return (g.columns + width - 1) / width; }
};

template <typename T>
class Multiplier {
 public:
  Multiplier(const Gradient& g, const Blocks& blocks, T* memory)
      : g_(g),
        blocks_(blocks),
        wide_(*g.wide.tensor, kSum),
        narrow_(*g.narrow.tensor, kSum),
        result_(*g.result.tensor, kSum),
        unfolded_(memory),
        panel_(unfolded_ + blocks.height * blocks.pixels),
        converted_(panel_ + blocks.tile * blocks.pixels),
        sums_(converted_ + blocks.tile * blocks.pixels) {}

  // Computes one block of rows and columns of one group of one image range.
  void run(int64_t item) {
    const int64_t across = blocks_.across(g_);
    const int64_t down = blocks_.down(g_);
    group_ = item / across / down;
    row_ = item / across % down * blocks_.height;
    rows_ = std::min(blocks_.height, g_.rows() - row_);
    column_ = item % across * blocks_.width;
    columns_ = std::min(blocks_.width, g_.columns - column_);
    std::fill(sums_, sums_ + rows_ * blocks_.width, T{0});
    for (int64_t image = 0; image < g_.batch; ++image) {
      for (int64_t first = 0; first < g_.pixels(); first += blocks_.pixels) {
        const int64_t count = std::min(blocks_.pixels, g_.pixels() - first);
        unfold(image, first, count);
        if (blocks_.dots) {
          add_dots(image, first, count);
        } else {
          add_tiles(image, first, count);
        }
      }
    }
    store();
  }

 private:
  static constexpr DType kSum = SumType<T>::kDType;

  // Calls body(d, h, w, n) for pixels first..first + count - 1, one piece of a line at a time.
  template <typename Body>
  void for_each_line(int64_t first, int64_t count, Body body) const {
    const int64_t end = first + count;
    for (int64_t p = first, n = 0; p < end; p += n) {
      const int64_t w = p % g_.axes[2].out;
      const int64_t line = p / g_.axes[2].out;
      n = std::min(g_.axes[2].out - w, end - p);
      body(line / g_.axes[1].out, line % g_.axes[1].out, w, n);
    }
  }

  // Gathers the rows of the block, `count` pixels each.
  void unfold(int64_t image, int64_t first, int64_t count) {
    for (int64_t done = 0, n = 0; done < rows_; done += n) {
      const int64_t tap = (row_ + done) / g_.channels;
      const int64_t channel = (row_ + done) % g_.channels;
      n = std::min(g_.channels - channel, rows_ - done);
      const int64_t from =
          image * g_.wide.outer_stride + (group_ * g_.channels + channel) * g_.wide.inner_stride;
      unfold_tap(tap, from, n, first, count, unfolded_ + done * blocks_.pixels);
    }
  }

  // Gathers what one tap reads in n channels; the first of these starts at `from`.
  void unfold_tap(int64_t tap, int64_t from, int64_t n, int64_t first, int64_t count, T* to) {
    const PoolAxis* axes = g_.axes;
    const int64_t k = tap % axes[2].kernel;
    const int64_t j = tap / axes[2].kernel % axes[1].kernel;
    const int64_t i = tap / axes[2].kernel / axes[1].kernel;
    int64_t lo = 0;
    int64_t hi = 0;
    axes[2].outputs_inside(k, &lo, &hi);
    for_each_line(first, count, [&](int64_t d, int64_t h, int64_t w, int64_t width) {
      const int64_t z = axes[0].start(d) + i * axes[0].dilation;
      const int64_t y = axes[1].start(h) + j * axes[1].dilation;
      const bool inside = z >= 0 && z < axes[0].in && y >= 0 && y < axes[1].in;
      const int64_t begin = inside ? std::min(std::max(lo, w), w + width) : w + width;
      const int64_t end = std::max(std::min(hi, w + width), begin);
      clear(to, n, begin - w);
      if (begin < end) {
        const int64_t x = axes[2].start(begin) + k * axes[2].dilation;
        const int64_t at =
            from + z * g_.wide.strides[0] + y * g_.wide.strides[1] + x * g_.wide.strides[2];
        copy_channels(at, n, end - begin, to + (begin - w));
      }
      clear(to + (end - w), n, w + width - end);
      to += width;
    });
  }

  void clear(T* to, int64_t n, int64_t width) const {
    if (width == 0) return;
    for (int64_t c = 0; c < n; ++c) std::fill_n(to + c * blocks_.pixels, width, T{0});
  }

  void copy_channels(int64_t at, int64_t n, int64_t width, T* to) {
    const int64_t stride = g_.axes[2].stride * g_.wide.strides[2];
    for (int64_t c = 0; g_.wide.inner_stride == 1 && n > kFewRows; c += blocks_.tile) {
      if (c >= n) return;
      transpose_channels(at + c * g_.wide.inner_stride, stride, std::min(blocks_.tile, n - c),
                         width, to + c * blocks_.pixels);
    }
    for (int64_t c = 0; c < n; ++c) {
      const T* row = static_cast<const T*>(
          wide_.read(at + c * g_.wide.inner_stride, stride, static_cast<size_t>(width)));
      std::copy(row, row + width, to + c * blocks_.pixels);
    }
  }

  // Transposes at most one tile's width of pixels, which are `stride` elements apart.
  void transpose_channels(int64_t at, int64_t stride, int64_t n, int64_t width, T* to) {
    const Tensor& tensor = *g_.wide.tensor;
    const void* from = element_at(tensor, at);
    CopyBlock transposition;
    if (tensor.dtype != kSum) {
      CopyBlock block;
      block.push(width, stride, n);
      block.push(n, g_.wide.inner_stride, 1);
      converting_copy(from, tensor.dtype, converted_, kSum, block);
      from = converted_;
      transposition.push(n, 1, blocks_.pixels);
      transposition.push(width, n, 1);
    } else {
      transposition.push(n, g_.wide.inner_stride, blocks_.pixels);
      transposition.push(width, stride, 1);
    }
    strided_copy(from, to, transposition, sizeof(T));
  }

  // The offset of one pixel of a channel of `narrow`.
  int64_t narrow_offset(int64_t image, int64_t column, int64_t d, int64_t h, int64_t w) const {
    return image * g_.narrow.outer_stride +
           (group_ * g_.columns + column) * g_.narrow.inner_stride + d * g_.narrow.strides[0] +
           h * g_.narrow.strides[1] + w * g_.narrow.strides[2];
  }

  void add_dots(int64_t image, int64_t first, int64_t count) {
    for (int64_t c = 0; c < columns_; ++c) {
      T* to = panel_;
      for_each_line(first, count, [&](int64_t d, int64_t h, int64_t w, int64_t n) {
        const int64_t at = narrow_offset(image, column_ + c, d, h, w);
        const T* line =
            static_cast<const T*>(narrow_.read(at, g_.narrow.strides[2], static_cast<size_t>(n)));
        to = std::copy(line, line + n, to);
      });
      for (int64_t i = 0; i < rows_; ++i) {
        sums_[i * blocks_.width + c] +=
            SumType<T>::loops().dot(unfolded_ + i * blocks_.pixels, panel_, count);
      }
    }
  }

  void add_tiles(int64_t image, int64_t first, int64_t count) {
    ProductTile<T> t{};
    t.k = count;
    t.a_stride = blocks_.pixels;
    t.b = panel_;
    t.b_stride = blocks_.tile;
    t.sums_stride = blocks_.width;
    for (int64_t j = 0; j < columns_; j += blocks_.tile) {
      const int64_t cols = std::min(blocks_.tile, columns_ - j);
      if (cols < blocks_.tile) std::fill(panel_, panel_ + count * blocks_.tile, T{0});
      T* to = panel_;
      for_each_line(first, count, [&](int64_t d, int64_t h, int64_t w, int64_t n) {
        pack_line(narrow_offset(image, column_ + j, d, h, w), cols, n, to);
        to += n * blocks_.tile;
      });
      for (int64_t i = 0; i < rows_; i += kProductRows) {
        t.a = unfolded_ + i * blocks_.pixels;
        t.sums = sums_ + i * blocks_.width + j;
        SumType<T>::loops().tile[std::min(kProductRows, rows_ - i) - 1](t);
      }
    }
  }

  // Packs n pixels of some channels, so that channels are adjacent.
  void pack_line(int64_t at, int64_t cols, int64_t n, T* to) {
    const Tensor& tensor = *g_.narrow.tensor;
    const void* from = element_at(tensor, at);
    const int64_t stride = g_.narrow.strides[2];
    CopyBlock block;
    if (tensor.dtype == kSum || stride != 1) {
      block.push(cols, g_.narrow.inner_stride, 1);
      block.push(n, stride, blocks_.tile);
      return converting_copy(from, tensor.dtype, to, kSum, block);
    }
    // Converts long runs first, then transposes.
    block.push(cols, g_.narrow.inner_stride, n);
    block.push(n, 1, 1);
    converting_copy(from, tensor.dtype, converted_, kSum, block);
    CopyBlock transposition;
    transposition.push(cols, n, 1);
    transposition.push(n, 1, blocks_.tile);
    strided_copy(converted_, to, transposition, sizeof(T));
  }

  void store() {
    const ConvTensor& out = g_.result;
    for (int64_t i = 0; i < rows_; ++i) {
      int64_t tap = (row_ + i) / g_.channels;
      int64_t at = (group_ * g_.columns + column_) * out.outer_stride +
                   (row_ + i) % g_.channels * out.inner_stride;
      for (size_t s = kMaxSpatial; s-- > 0;) {
        at += tap % g_.axes[s].kernel * out.strides[s];
        tap /= g_.axes[s].kernel;
      }
      const T* sums = sums_ + i * blocks_.width;
      std::copy(sums, sums + columns_, static_cast<T*>(result_.target(at, out.outer_stride)));
      result_.store(at, out.outer_stride, static_cast<size_t>(columns_));
    }
  }

  const Gradient& g_;
  const Blocks& blocks_;
  RowReader wide_;
  RowReader narrow_;
  RowWriter result_;
  T* unfolded_;
  T* panel_;
  T* converted_;
  T* sums_;
  int64_t group_ = 0;
  int64_t row_ = 0;
  int64_t rows_ = 0;
  int64_t column_ = 0;
  int64_t columns_ = 0;
};

template <typename T>
void run(KernelContext& ctx, const ScratchShares& shares, const Gradient& g) {
  const int64_t tile = SumType<T>::loops().width;
  const Blocks blocks(g, tile, static_cast<int64_t>(share_bytes(shares) / sizeof(T)));
  run_items(ctx, shares, g.groups * blocks.down(g) * blocks.across(g),
            [&](void* memory) { return Multiplier<T>(g, blocks, static_cast<T*>(memory)); });
}

}  // namespace

void conv_weight_gradient(KernelContext& ctx, const Conv& forward, const Tensor& grad,
                          const Tensor& result) {
  Gradient g;
  g.wide = forward.transposed ? conv_tensor(grad) : forward.input;
  g.narrow = forward.transposed ? forward.input : conv_tensor(grad);
  g.result = conv_tensor(result);
  g.batch = forward.batch;
  g.groups = forward.groups;
  g.channels = forward.transposed ? forward.group_out : forward.group_in;
  g.columns = forward.transposed ? forward.group_in : forward.group_out;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    g.axes[s].in = g.wide.size[s];
    g.axes[s].out = g.narrow.size[s];
    g.axes[s].kernel = g.result.size[s];
    g.axes[s].stride = forward.stride[s];
    g.axes[s].padding = forward.padding[s];
    g.axes[s].dilation = forward.dilation[s];
  }
  const ScratchShares shares(ctx);
  if (channels_gradient(ctx, shares, g)) return;
  join_lines(&g);
  if (result.dtype == DType::Float64) return run<double>(ctx, shares, g);
  run<float>(ctx, shares, g);
}

}  // namespace rushlight::kernels
