// The gradient of max pooling: the gradient of each output is added at the position of its maximum,
// which `indices` gives. Planes are independent of each other.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/pooling/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/scratch_shares.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kSpatial = 2;
constexpr int64_t kStackSums = 1024;
constexpr int64_t kChannels = 64;  // maximum adjacent channels of a strip

struct Backward {
  Pooling pooling;  // "in" is the gradient that is written, "out" the gradient that is read
  Pooling places;   // the same, with the strides of `indices`
  const Tensor* grad = nullptr;
  const Tensor* indices = nullptr;
  const Tensor* result = nullptr;

  // True if pixels follow each other in memory.
  bool in_line() const { return pooling.h.in == 1 || pooling.in_h == pooling.w.in * pooling.in_w; }
  bool out_in_line() const {
    const auto flat = [](const Pooling& p) { return p.h.out == 1 || p.out_h == p.w.out * p.out_w; };
    return flat(pooling) && flat(places);
  }
  int64_t pixels() const { return pooling.h.in * pooling.w.in; }
  // The number of channels that are processed together.
  int64_t strip() const {
    const bool side_by_side = pooling.out_c == 1 && places.out_c == 1 && pooling.out_w != 1;
    return side_by_side ? std::min(pooling.c, kChannels) : 1;
  }
  int64_t strips() const { return (pooling.c + strip() - 1) / strip(); }
};

// Sums of pixels from..to - 1 of a strip: pixel p of channel c is at data + p * stride + c *
// channel.
template <typename T>
struct Sums {
  T* data;
  int64_t stride;
  int64_t channel;
  int64_t from;
  int64_t to;

  void add(int64_t place, int64_t c, T value) const {
    if (place >= from && place < to) data[(place - from) * stride + c * channel] += value;
  }
};

template <typename T>
class Strips {
 public:
  // `memory` has `room` elements, at least enough for one pixel of a strip.
  Strips(const Backward& b, T* memory, int64_t room)
      : b_(b),
        p_(b.pooling),
        grad_(*b.grad, compute_dtype(b.grad->dtype)),
        indices_(*b.indices, DType::Int64),
        memory_(memory),
        room_(room) {}

  void run(int64_t item) {
    image_ = item / b_.strips();
    channel_ = item % b_.strips() * b_.strip();
    count_ = std::min(b_.strip(), p_.c - channel_);
    const int64_t at = image_ * p_.in_n + channel_ * p_.in_c;
    if (b_.result->dtype == kSum && b_.in_line()) {
      Sums<T> sums = {b_.result->as<T>() + at, p_.in_w, p_.in_c, 0, b_.pixels()};
      clear(sums);
      return add_all(sums);
    }
    const int64_t band = std::min(room_ / count_, b_.pixels());
    for (int64_t first = 0; first < b_.pixels(); first += band) {
      const Sums<T> sums = {memory_, count_, 1, first, std::min(first + band, b_.pixels())};
      clear(sums);
      add_all(sums);
      store(sums, at);
    }
  }

 private:
  static constexpr DType kSum = sizeof(T) == sizeof(double) ? DType::Float64 : DType::Float32;

  void clear(const Sums<T>& sums) const {
    const int64_t n = sums.to - sums.from;
    if (sums.stride == count_) {
      std::fill_n(sums.data, n * count_, T{0});
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      T* const pixel = sums.data + i * sums.stride;
      for (int64_t c = 0; c < count_; ++c) pixel[c * sums.channel] = 0;
    }
  }

  void add_all(const Sums<T>& sums) {
    const bool flat = b_.out_in_line();
    const int64_t width = flat ? p_.h.out * p_.w.out : p_.w.out;
    for (int64_t h = 0; h < (flat ? 1 : p_.h.out); ++h) {
      const int64_t from = image_ * p_.out_n + channel_ * p_.out_c + h * p_.out_h;
      const int64_t index =
          image_ * b_.places.out_n + channel_ * b_.places.out_c + h * b_.places.out_h;
      if (b_.strip() > 1) {
        for (int64_t w = 0; w < width; ++w) {
          add_run(from + w * p_.out_w, 1, index + w * b_.places.out_w, 1, count_, sums, 1);
        }
        continue;
      }
      for (int64_t w = 0; w < width; w += static_cast<int64_t>(kChunk)) {
        const int64_t n = std::min(width - w, static_cast<int64_t>(kChunk));
        add_run(from + w * p_.out_w, p_.out_w, index + w * b_.places.out_w, b_.places.out_w, n,
                sums, 0);
      }
    }
  }

  // Adds a run of n outputs, of one channel or, if `across` is 1, of one output per channel.
  void add_run(int64_t from, int64_t stride, int64_t index, int64_t index_stride, int64_t n,
               const Sums<T>& sums, int64_t across) {
    const size_t count = static_cast<size_t>(n);
    const T* g = static_cast<const T*>(grad_.read(from, stride, count));
    const int64_t* places = static_cast<const int64_t*>(indices_.read(index, index_stride, count));
    for (int64_t k = 0; k < n; ++k) sums.add(places[k], k * across, g[k]);
  }

  void store(const Sums<T>& sums, int64_t at) const {
    const int64_t width = b_.in_line() ? b_.pixels() : p_.w.in;
    for (int64_t p = sums.from, n = 0; p < sums.to; p += n) {
      n = std::min(width - p % width, sums.to - p);
      CopyBlock block;
      block.push(n, count_, p_.in_w);
      block.push(count_, 1, p_.in_c);
      converting_copy(sums.data + (p - sums.from) * count_, kSum,
                      element_at(*b_.result, at + p / width * p_.in_h + p % width * p_.in_w),
                      b_.result->dtype, block);
    }
  }

  const Backward& b_;
  const Pooling& p_;
  RowReader grad_;
  RowReader indices_;
  T* memory_;
  int64_t room_;
  int64_t image_ = 0;
  int64_t channel_ = 0;
  int64_t count_ = 0;
};

Status check_places(KernelContext& ctx, const Backward& b) {
  const int64_t* values = b.indices->as<int64_t>();
  const uint64_t pixels = static_cast<uint64_t>(b.pixels());
  uint64_t outside = 0;
  for (int64_t i = 0; i < b.indices->numel; ++i) {
    outside |= static_cast<uint64_t>(values[i]) >= pixels ? 1 : 0;
  }
  for (int64_t line = 0; outside != 0 && line < b.places.lines(); ++line) {
    const PoolLine at = channel_line(b.places, line);
    for (int64_t w = 0; w < b.places.w.out; ++w) {
      const int64_t index = values[at.to + w * b.places.out_w];
      if (static_cast<uint64_t>(index) < pixels) continue;
      return ctx.fail(Code::InvalidArgument,
                      "indices has %lld at row %lld, column %lld of the outputs, but must be from "
                      "0 to %lld",
                      static_cast<long long>(index), static_cast<long long>(at.h),
                      static_cast<long long>(w), static_cast<long long>(pixels - 1));
    }
  }
  return {};
}

template <typename T>
void scatter(KernelContext& ctx, const Backward& b) {
  const ScratchShares shares(ctx);
  const int64_t room = static_cast<int64_t>(shares.bytes() / sizeof(T));
  const int64_t items = b.pooling.n * b.strips();
  shares.run(ctx, items, [&](int64_t share, int64_t first, int64_t stride) {
    alignas(64) T stack[kStackSums];
    const bool little = room < kStackSums;
    Strips<T> strips(b, little ? stack : static_cast<T*>(shares.memory(share)),
                     little ? kStackSums : room);
    for (int64_t item = first; item < items; item += stride) strips.run(item);
  });
}

}  // namespace

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation,
//                                  ceil_mode, indices, *, grad_input)
Status max_pool2d_with_indices_backward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[1]->tensor();
  Tensor& out = args[8]->tensor();
  Backward b;
  b.grad = &args[0]->tensor();
  b.indices = &args[7]->tensor();
  b.result = &out;
  Shape shape;
  const PoolArguments arguments = {*args[2], *args[3], *args[4], args[5], args[6]->to_bool()};
  RL_TRY(read_pooling(ctx, self, kSpatial, arguments, &b.pooling, &shape));
  RL_TRY(check_pool_gradient(ctx, self, shape, *b.grad, out));
  RL_TRY(check_pool_shape(ctx, "indices", *b.indices, shape));
  RL_TRY(check_dtype(ctx, "indices", *b.indices, DType::Int64));
  b.places = b.pooling;
  b.places.take_strides(self, *b.indices, kSpatial);
  RL_TRY(check_places(ctx, b));
  RL_TRY(ctx.resize_like(out, self));
  if (out.numel == 0) return {};
  b.pooling.take_strides(out, *b.grad, kSpatial);
  if (out.dtype == DType::Float64) {
    scatter<double>(ctx, b);
  } else {
    scatter<float>(ctx, b);
  }
  return {};
}

}  // namespace rushlight::kernels
