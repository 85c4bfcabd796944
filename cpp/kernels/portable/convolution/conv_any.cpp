// Convolution of any type that can be multiplied, in any layout. It computes blocks of output
// channels times tiles of output pixels. For each tile it gathers the input that the tile depends
// on, converts it to the type of the sums, and multiplies it by the weights, one block of (tap,
// channel) pairs at a time.
#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/sum_type.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kDepth = 256;    // (tap, channel) pairs in a block
constexpr int64_t kHeight = 96;    // output channels in a block
constexpr int64_t kTiles = 8;      // pixel tiles that share converted weights
constexpr int64_t kMaxTile = 32;   // maximum pixels in a tile, of any type
constexpr int64_t kKeptTaps = 27;  // maximum taps whose offsets are reused for the next group

// Reads elements at `from` + offsets[i] + shift, or zero where the offset is negative.
using GatherFn = void (*)(const void* from, const int64_t* offsets, int64_t shift, int64_t n,
                          void* to);
template <typename T>
void gather(const void* from, const int64_t* offsets, int64_t shift, int64_t n, void* to) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = offsets[i] < 0 ? T{0} : in[offsets[i] + shift];
}
// Writes elements to `to` + offsets[i].
using ScatterFn = void (*)(const void* from, const int64_t* offsets, int64_t n, void* to);
template <typename T>
void scatter(const void* from, const int64_t* offsets, int64_t n, void* to) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) out[offsets[i]] = in[i];
}

struct Movers {
  GatherFn gather;
  ScatterFn scatter;
};
Movers movers(size_t size) {
  if (size == 1) return {gather<uint8_t>, scatter<uint8_t>};
  if (size == 2) return {gather<uint16_t>, scatter<uint16_t>};
  if (size == 4) return {gather<uint32_t>, scatter<uint32_t>};
  return {gather<uint64_t>, scatter<uint64_t>};
}

// The sizes of blocks, chosen so that they fit in `room` elements of memory.
struct Blocks {
  int64_t tile;
  int64_t depth;
  int64_t height;
  int64_t width;

  Blocks(const Conv& conv, int64_t tile_width, int64_t room)
      : tile(tile_width),
        depth(std::min(kDepth, conv.group_in * conv.taps())),
        height(std::min(kHeight, conv.group_out)),
        width(std::min(kTiles, (conv.pixels() + tile - 1) / tile) * tile) {
    // All groups share the offsets of a tile's pixels.
    if (conv.groups > 1 && conv.taps() <= kKeptTaps) width = tile;
    const auto fits = [&] { return height * depth + depth * tile + height * width <= room; };
    while (!fits() && width > tile) width = (width / tile + 1) / 2 * tile;
    while (!fits() && height > 1) height = (height + 1) / 2;
    while (!fits() && depth > 1) depth = (depth + 1) / 2;
  }
};

template <typename T>
class Convolver {
 public:
  Convolver(const Conv& conv, const Blocks& blocks, T* memory)
      : conv_(conv),
        blocks_(blocks),
        dtype_(conv.out.tensor->dtype),
        movers_(movers(element_size(dtype_))),
        to_sum_(convert_loops().to[compute_index(kSum)][static_cast<size_t>(dtype_)]),
        weights_(memory),
        panel_(weights_ + blocks.height * blocks.depth),
        sums_(panel_ + blocks.depth * blocks.tile) {}

  static int64_t items(const Conv& conv, const Blocks& blocks) {
    return conv.batch * conv.groups * channel_blocks(conv, blocks) * pixel_blocks(conv, blocks);
  }

  // Computes one block of output channels and pixels, of one group of one image.
  void run(int64_t item) {
    group_ = item % conv_.groups;
    item /= conv_.groups;
    const int64_t channel = item % channel_blocks(conv_, blocks_) * blocks_.height;
    item /= channel_blocks(conv_, blocks_);
    const int64_t pixel = item % pixel_blocks(conv_, blocks_) * blocks_.width;
    image_ = item / pixel_blocks(conv_, blocks_);
    const int64_t rows = std::min(blocks_.height, conv_.group_out - channel);
    const int64_t pixels = std::min(blocks_.width, conv_.pixels() - pixel);
    std::fill(sums_, sums_ + rows * blocks_.width, T{0});
    const int64_t k_end = conv_.group_in * conv_.taps();
    for (int64_t k = 0; k < k_end; k += blocks_.depth) {
      const int64_t depth = std::min(blocks_.depth, k_end - k);
      convert_weights(channel, rows, k, depth);
      for (int64_t j = 0; j < pixels; j += blocks_.tile) {
        pack(pixel + j, std::min(blocks_.tile, pixels - j), k, depth);
        multiply(rows, j, depth);
      }
    }
    store_results(channel, rows, pixel, pixels);
  }

 private:
  static constexpr DType kSum = SumType<T>::kDType;

  static int64_t channel_blocks(const Conv& conv, const Blocks& blocks) {
    return (conv.group_out + blocks.height - 1) / blocks.height;
  }
  static int64_t pixel_blocks(const Conv& conv, const Blocks& blocks) {
    return (conv.pixels() + blocks.width - 1) / blocks.width;
  }

  // Reads n elements and converts them to the type of the sums.
  void read(const Tensor& tensor, int64_t start, const int64_t* offsets, int64_t shift, int64_t n,
            T* to) const {
    const void* from = element_at(tensor, start);
    if (dtype_ == kSum) return movers_.gather(from, offsets, shift, n, to);
    alignas(64) uint64_t raw[kDepth];
    movers_.gather(from, offsets, shift, n, raw);
    convert(raw, dtype_, to, kSum, static_cast<size_t>(n));
  }

  // Computes the coordinates of tap t.
  void tap_at(int64_t t, int64_t* at) const {
    for (size_t s = kMaxSpatial; s-- > 0;) {
      at[s] = t % conv_.weight.size[s];
      t /= conv_.weight.size[s];
    }
  }

  void convert_weights(int64_t channel, int64_t rows, int64_t k0, int64_t depth) {
    const ConvTensor& w = conv_.weight;
    const int64_t in_stride = conv_.transposed ? w.outer_stride : w.inner_stride;
    const int64_t out_stride = conv_.transposed ? w.inner_stride : w.outer_stride;
    const int64_t group_size = conv_.transposed ? conv_.group_in : conv_.group_out;
    if (weights_at_ != k0) {
      weights_at_ = k0;
      for (int64_t k = 0; k < depth; ++k) {
        int64_t at[kMaxSpatial];
        tap_at((k0 + k) / conv_.group_in, at);
        weight_offsets_[k] = (k0 + k) % conv_.group_in * in_stride;
        for (size_t s = 0; s < kMaxSpatial; ++s) weight_offsets_[k] += at[s] * w.strides[s];
      }
    }
    const int64_t start = group_ * group_size * w.outer_stride + channel * out_stride;
    for (int64_t i = 0; i < rows; ++i) {
      read(*w.tensor, start + i * out_stride, weight_offsets_, 0, depth,
           weights_ + i * blocks_.depth);
    }
  }

  // The input positions of a tile's pixels before the shift of a tap is added.
  struct Pixels {
    int64_t count;
    int64_t at[kMaxSpatial][kMaxTile];
  };

  void locate(int64_t first, int64_t count, Pixels* pixels) const {
    pixels->count = count;
    for (int64_t j = 0; j < count; ++j) {
      int64_t rest = first + j;
      for (size_t s = kMaxSpatial; s-- > 0;) {
        const int64_t o = rest % conv_.out.size[s];
        rest /= conv_.out.size[s];
        pixels->at[s][j] =
            conv_.transposed ? o + conv_.padding[s] : o * conv_.stride[s] - conv_.padding[s];
      }
    }
  }

  // The input elements that a tap reads for the pixels of a tile: the offset of each, or -1 if it
  // is outside of the input. The bits of `outside` mark the same pixels. If the others are dense
  // (`in_a_row`), pixel j reads element `base` + j.
  struct TapReads {
    int64_t offsets[kMaxTile];
    int64_t base = 0;
    bool in_a_row = false;
    uint32_t outside = 0;
  };

  // Adds a tap's shift along one dimension to the offsets.
  void shift_along(const Pixels& pixels, size_t s, int64_t tap, const int64_t* before,
                   int64_t* offsets) const {
    const int64_t count = pixels.count;
    const int64_t shift = conv_.transposed ? -tap * conv_.dilation[s] : tap * conv_.dilation[s];
    const int64_t size = conv_.input.size[s];
    const int64_t input_stride = conv_.input.strides[s];
    const int64_t stride = conv_.transposed ? conv_.stride[s] : 1;
    for (int64_t j = 0; j < count; ++j) {
      int64_t at = pixels.at[s][j] + shift;
      bool inside = at >= 0 && before[j] >= 0;
      if (stride > 1) {
        inside = inside && at % stride == 0;
        at /= stride;
      }
      inside = inside && at < size;
      offsets[j] = inside ? before[j] + at * input_stride : -1;
    }
  }

  void find_neighbours(int64_t count, TapReads* reads) const {
    std::fill(reads->offsets + count, reads->offsets + kMaxTile, -1);
    reads->in_a_row = true;
    reads->outside = 0;
    bool any = false;
    for (int64_t j = 0; j < blocks_.tile; ++j) {
      if (reads->offsets[j] < 0) {
        reads->outside |= uint32_t{1} << j;
        continue;
      }
      if (!any) reads->base = reads->offsets[j] - j;
      any = true;
      reads->in_a_row = reads->in_a_row && reads->offsets[j] - j == reads->base;
    }
    reads->in_a_row = reads->in_a_row && any;
  }

  void find_reads(const Pixels& pixels, int64_t t, TapReads* reads) const {
    int64_t tap[kMaxSpatial];
    tap_at(t, tap);
    std::fill(reads->offsets, reads->offsets + kMaxTile, 0);
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      shift_along(pixels, s, tap[s], reads->offsets, reads->offsets);
    }
    find_neighbours(pixels.count, reads);
  }

  // Stores the offsets of all taps for a tile's pixels, if there are few taps.
  void keep(int64_t first, int64_t count) {
    if (kept_at_ == first) return;
    kept_at_ = first;
    locate(first, count, &pixels_);
    if (conv_.taps() > kKeptTaps) return;
    const int64_t none[kMaxTile] = {};
    int64_t planes[kMaxTile];
    int64_t lines[kMaxTile];
    TapReads* reads = kept_;
    for (int64_t d = 0; d < conv_.weight.size[0]; ++d) {
      shift_along(pixels_, 0, d, none, planes);
      for (int64_t h = 0; h < conv_.weight.size[1]; ++h) {
        shift_along(pixels_, 1, h, planes, lines);
        for (int64_t w = 0; w < conv_.weight.size[2]; ++w, ++reads) {
          shift_along(pixels_, 2, w, lines, reads->offsets);
          find_neighbours(count, reads);
        }
      }
    }
  }

  void pack(int64_t first, int64_t count, int64_t k0, int64_t depth) {
    keep(first, count);
    TapReads other;
    const int64_t start =
        image_ * conv_.input.outer_stride + group_ * conv_.group_in * conv_.input.inner_stride;
    int64_t tap = k0 / conv_.group_in;
    int64_t channel = k0 % conv_.group_in;
    const TapReads* reads = nullptr;
    for (int64_t k = 0; k < depth; ++k) {
      if (reads == nullptr || channel == 0) {
        reads = conv_.taps() <= kKeptTaps ? &kept_[tap] : &other;
        if (reads == &other) find_reads(pixels_, tap, &other);
      }
      read_input(*reads, start, channel * conv_.input.inner_stride, panel_ + k * blocks_.tile);
      if (++channel == conv_.group_in) {
        channel = 0;
        ++tap;
      }
    }
  }

  void read_input(const TapReads& reads, int64_t start, int64_t shift, T* to) const {
    const Tensor& in = *conv_.input.tensor;
    const int64_t from = start + shift + reads.base;
    if (!reads.in_a_row || from < 0 || from + blocks_.tile > in.numel) {
      return read(in, start, reads.offsets, shift, blocks_.tile, to);
    }
    to_sum_(element_at(in, from), to, static_cast<size_t>(blocks_.tile));
    for (uint32_t rest = reads.outside; rest != 0; rest &= rest - 1) to[__builtin_ctz(rest)] = 0;
  }

  void multiply(int64_t rows, int64_t column, int64_t depth) {
    ProductTile<T> t{};
    t.k = depth;
    t.a_stride = blocks_.depth;
    t.b = panel_;
    t.b_stride = blocks_.tile;
    t.sums_stride = blocks_.width;
    for (int64_t i = 0; i < rows; i += kProductRows) {
      t.a = weights_ + i * blocks_.depth;
      t.sums = sums_ + i * blocks_.width + column;
      SumType<T>::loops().tile[std::min(kProductRows, rows - i) - 1](t);
    }
  }

  T bias_of(int64_t channel) const {
    T bias = 0;
    if (conv_.bias != nullptr) {
      convert(element_at(*conv_.bias, channel), conv_.bias->dtype, &bias, kSum, 1);
    }
    return bias;
  }

  void store_results(int64_t channel, int64_t rows, int64_t pixel, int64_t pixels) {
    const ConvTensor& out = conv_.out;
    alignas(64) uint64_t raw[kTiles * kMaxTile];
    for (int64_t j = 0; outs_at_ != pixel && j < pixels; ++j) {
      int64_t rest = pixel + j;
      out_offsets_[j] = 0;
      for (size_t s = kMaxSpatial; s-- > 0;) {
        out_offsets_[j] += rest % out.size[s] * out.strides[s];
        rest /= out.size[s];
      }
    }
    outs_at_ = pixel;
    const int64_t first = group_ * conv_.group_out + channel;
    for (int64_t i = 0; i < rows; ++i) {
      T* sums = sums_ + i * blocks_.width;
      const T bias = bias_of(first + i);
      for (int64_t j = 0; j < pixels; ++j) sums[j] += bias;
      convert(sums, kSum, raw, dtype_, static_cast<size_t>(pixels));
      const int64_t start = image_ * out.outer_stride + (first + i) * out.inner_stride;
      movers_.scatter(raw, out_offsets_, pixels, element_at(*out.tensor, start));
    }
  }

  const Conv& conv_;
  Blocks blocks_;
  DType dtype_;
  Movers movers_;
  ConvertFn to_sum_;
  T* weights_;
  T* panel_;
  T* sums_;
  int64_t group_ = 0;
  int64_t image_ = 0;
  // Values that are reused by later blocks, with the first k or pixel that they belong to.
  int64_t weights_at_ = -1;
  int64_t kept_at_ = -1;
  int64_t outs_at_ = -1;
  Pixels pixels_;
  int64_t weight_offsets_[kDepth];
  TapReads kept_[kKeptTaps];
  int64_t out_offsets_[kTiles * kMaxTile];
};

template <typename T>
void run(KernelContext& ctx, const ScratchShares& shares, const Conv& conv) {
  const int64_t tile = SumType<T>::loops().width;
  const Blocks blocks(conv, tile, static_cast<int64_t>(share_bytes(shares) / sizeof(T)));
  run_items(ctx, shares, Convolver<T>::items(conv, blocks),
            [&](void* memory) { return Convolver<T>(conv, blocks, static_cast<T*>(memory)); });
}

}  // namespace

void conv_any(KernelContext& ctx, const ScratchShares& shares, const Conv& conv) {
  const DType dtype = conv.out.tensor->dtype;
  if (dtype == DType::Float64) return run<double>(ctx, shares, conv);
  if (dtype == DType::Int64) return run<uint64_t>(ctx, shares, conv);
  if (is_floating(dtype)) return run<float>(ctx, shares, conv);
  run<uint32_t>(ctx, shares, conv);
}

}  // namespace rushlight::kernels
