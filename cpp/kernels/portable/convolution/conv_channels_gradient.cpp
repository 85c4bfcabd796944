// The gradient of a convolution's weights where channels are adjacent in memory. Boxes of pixels
// are copied as float32, with their padding, so that a tap reads a line of the copy in place.
#include <algorithm>

#include "rushlight/kernels/portable/convolution/conv_gradient.h"
#include "rushlight/kernels/portable/loops/convolution/channels.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 32;  // channels of a box of either operand
constexpr int64_t kPixels =
    128;  // pixels that a tap reads at a time: lines of this length stay in the L1 cache
constexpr int64_t kMaxLines = 32;

int64_t blocks(int64_t n, int64_t each) { return (n + each - 1) / each; }

// The floats of a copy with the slack that may be read after it, rounded up to whole cache lines.
int64_t floats(int64_t n) { return blocks(n + kChannelSlack, 16) * 16; }

// A block of work: some whole groups, or some channels and columns of one group.
struct Extent {
  int64_t groups;
  int64_t channels;
  int64_t columns;
  int64_t pixels[kMaxSpatial];
  bool depthwise;

  explicit Extent(const Gradient& g)
      : groups(std::min(std::max<int64_t>(kBlock / std::max(g.channels, g.columns), 1), g.groups)),
        channels(std::min(g.channels, kBlock)),
        columns(std::min(g.columns, kBlock)),
        pixels{g.axes[0].out, g.axes[1].out, g.axes[2].out},
        depthwise(g.channels * g.columns == 1) {}

  static int64_t span(const Gradient& g, size_t s, int64_t count) {
    const PoolAxis& axis = g.axes[s];
    return (count - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  }
  int64_t wide_floats(const Gradient& g) const {
    int64_t n = groups * channels;
    for (size_t s = 0; s < kMaxSpatial; ++s) n = many(n, span(g, s, pixels[s]));
    return floats(n);
  }
  int64_t narrow_floats() const {
    return floats(groups * columns * pixels[0] * pixels[1] * pixels[2]);
  }
  int64_t sums_floats(const Gradient& g) const {
    return floats(groups * g.taps() * channels * columns);
  }
  int64_t all_floats(const Gradient& g) const {
    return wide_floats(g) + narrow_floats() + sums_floats(g);
  }
  // Reduces the pixels until the block fits. False if a single pixel of these channels does not
  // fit.
  bool fit(const Gradient& g, int64_t room) {
    for (int64_t& n : pixels) {
      while (n > 1 && all_floats(g) > room) n = (n + 1) / 2;
    }
    return all_floats(g) <= room;
  }
  int64_t items(const Gradient& g) const {
    return blocks(g.groups, groups) * blocks(g.channels, channels) * blocks(g.columns, columns);
  }
};

class BoxSums {
 public:
  BoxSums(const Gradient& g, const Extent& most, float* memory)
      : g_(g),
        most_(most),
        wide_(memory),
        narrow_(wide_ + most.wide_floats(g)),
        sums_(narrow_ + most.narrow_floats()) {}

  // Computes one block of groups, channels and columns.
  void run(int64_t item) {
    const auto take = [&item](int64_t size, int64_t each, int64_t* first, int64_t* count) {
      *first = item % blocks(size, each) * each;
      *count = std::min(each, size - *first);
      item /= blocks(size, each);
    };
    take(g_.columns, most_.columns, &column_, &columns_);
    take(g_.channels, most_.channels, &channel_, &channels_);
    take(g_.groups, most_.groups, &group_, &groups_);
    std::fill_n(sums_, groups_ * g_.taps() * channels_ * columns_, 0.0f);
    int64_t at[kMaxSpatial];
    for (int64_t image = 0; image < g_.batch; ++image) {
      for (at[0] = 0; at[0] < g_.axes[0].out; at[0] += most_.pixels[0]) {
        for (at[1] = 0; at[1] < g_.axes[1].out; at[1] += most_.pixels[1]) {
          for (at[2] = 0; at[2] < g_.axes[2].out; at[2] += most_.pixels[2]) add_box(image, at);
        }
      }
    }
    store();
  }

 private:
  void add_box(int64_t image, const int64_t* at) {
    ChannelBox& wide = wide_box_;
    ChannelBox& narrow = narrow_box_;
    wide.channels = groups_ * channels_;
    narrow.channels = groups_ * columns_;
    wide.offset = image * g_.wide.outer_stride + group_ * g_.channels + channel_;
    narrow.offset = image * g_.narrow.outer_stride + group_ * g_.columns + column_;
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      narrow.first[s] = at[s];
      narrow.size[s] = std::min(most_.pixels[s], g_.axes[s].out - at[s]);
      wide.first[s] = g_.axes[s].start(at[s]);
      wide.size[s] = Extent::span(g_, s, narrow.size[s]);
    }
    copy_box(g_.wide, wide, wide_);
    copy_box(g_.narrow, narrow, narrow_);
    const int64_t lines = narrow.size[0] * narrow.size[1];
    const int64_t some =
        most_.depthwise ? 1 : std::min(std::max<int64_t>(kPixels / narrow.size[2], 1), kMaxLines);
    for (int64_t line = 0; line < lines; line += some) {
      if (most_.depthwise) {
        add_depthwise(line);
      } else {
        add_lines(line, std::min(some, lines - line));
      }
    }
  }

  // The first element that tap t reads in a line.
  const float* input_of_tap(int64_t t, int64_t line) const {
    const PoolAxis* axes = g_.axes;
    const int64_t k = t % axes[2].kernel;
    const int64_t j = t / axes[2].kernel % axes[1].kernel;
    const int64_t i = t / axes[2].kernel / axes[1].kernel;
    const int64_t z = line / narrow_box_.size[1] * axes[0].stride + i * axes[0].dilation;
    const int64_t y = line % narrow_box_.size[1] * axes[1].stride + j * axes[1].dilation;
    const int64_t x = k * axes[2].dilation;
    return wide_ + ((z * wide_box_.size[1] + y) * wide_box_.size[2] + x) * wide_box_.channels;
  }
  const float* narrow_line(int64_t line) const {
    return narrow_ + line * narrow_box_.size[2] * narrow_box_.channels;
  }

  void add_depthwise(int64_t line) {
    const float* inputs[kMaxLineTaps];
    for (int64_t first = 0; first < g_.taps(); first += kMaxLineTaps) {
      const int64_t taps = std::min(kMaxLineTaps, g_.taps() - first);
      for (int64_t t = 0; t < taps; ++t) inputs[t] = input_of_tap(first + t, line);
      channel_loops().line(inputs, taps, g_.axes[2].stride * groups_, narrow_line(line),
                           narrow_box_.size[2], groups_, sums_ + first * groups_);
    }
  }

  void add_lines(int64_t line, int64_t count) {
    const float* inputs[kMaxLines];
    const float* lines[kMaxLines];
    for (int64_t l = 0; l < count; ++l) lines[l] = narrow_line(line + l);
    ChannelTile t{};
    t.terms = count;
    t.a = inputs;
    t.b = lines;
    t.a_row = 1;
    t.a_stride = g_.axes[2].stride * wide_box_.channels;
    t.b_stride = narrow_box_.channels;
    t.k = narrow_box_.size[2];
    t.sums_stride = columns_;
    for (int64_t tap = 0; tap < g_.taps(); ++tap) {
      for (int64_t l = 0; l < count; ++l) inputs[l] = input_of_tap(tap, line + l);
      for (int64_t g = 0; g < groups_; ++g) {
        add_tap(&t, g, sums_ + (g * g_.taps() + tap) * channels_ * columns_);
      }
    }
  }

  // Adds the products of one tap and one group to the sums.
  void add_tap(ChannelTile* t, int64_t group, float* sums) const {
    const ChannelLoops& loops = channel_loops();
    const int64_t width = kMaxChannelVectors * loops.lanes;
    for (int64_t j = 0; j < columns_; j += width) {
      t->columns = std::min(width, columns_ - j);
      t->b_offset = group * columns_ + j;
      const auto* const tiles = loops.tile[t->columns > loops.lanes ? 1 : 0];
      for (int64_t c = 0; c < channels_; c += loops.rows) {
        t->a_offset = group * channels_ + c;
        t->sums = sums + c * columns_ + j;
        tiles[std::min(loops.rows, channels_ - c) - 1](*t);
      }
    }
  }

  void store() {
    const ConvTensor& out = g_.result;
    int64_t stride = most_.depthwise ? groups_ : channels_ * columns_;  // from tap to tap
    CopyBlock block;
    block.push(groups_, most_.depthwise ? 1 : g_.taps() * stride, g_.columns * out.outer_stride);
    for (size_t s = kMaxSpatial; s-- > 0;) {
      block.push(out.size[s], stride, out.strides[s]);
      stride *= out.size[s];
    }
    block.push(channels_, columns_, out.inner_stride);
    block.push(columns_, 1, out.outer_stride);
    const int64_t start =
        (group_ * g_.columns + column_) * out.outer_stride + channel_ * out.inner_stride;
    converting_copy(sums_, DType::Float32, element_at(*out.tensor, start), out.tensor->dtype,
                    block);
  }

  const Gradient& g_;
  const Extent most_;
  float* wide_;
  float* narrow_;
  float* sums_;  // [groups, taps, channels, columns]; depthwise: [taps, groups]
  ChannelBox wide_box_;
  ChannelBox narrow_box_;
  int64_t group_ = 0;
  int64_t groups_ = 0;
  int64_t channel_ = 0;
  int64_t channels_ = 0;
  int64_t column_ = 0;
  int64_t columns_ = 0;
};

}  // namespace

bool channels_gradient(KernelContext& ctx, const ScratchShares& shares, const Gradient& g) {
  const bool beside = g.wide.inner_stride == 1 && g.narrow.inner_stride == 1;
  if (!beside || g.result.tensor->dtype == DType::Float64) return false;
  Extent most(g);
  if (!most.fit(g, static_cast<int64_t>(share_bytes(shares) / sizeof(float)))) return false;
  run_items(ctx, shares, most.items(g),
            [&](void* memory) { return BoxSums(g, most, static_cast<float*>(memory)); });
  return true;
}

}  // namespace rushlight::kernels
