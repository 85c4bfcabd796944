#include "rushlight/engine/loops/images/pixels.h"

#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

// Transposes a square of channels by columns. False if fewer are left than a square has.
inline bool transpose_square(const float* in, int64_t channel_stride, int64_t columns,
                             int64_t channels, float* out, int64_t out_stride) {
  if (columns < kLanes || channels < kLanes) return false;
  Vec square[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) square[i] = load(in + i * channel_stride);
  transpose(square);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) store(out + i * out_stride, square[i]);
  return true;
}

void gather_three(const float* in, int64_t channel_stride, int64_t columns, float* out) {
  const float* one = in + channel_stride;
  const float* two = one + channel_stride;
  for (int64_t x = 0; x < columns; ++x) {
    out[3 * x] = in[x];
    out[3 * x + 1] = one[x];
    out[3 * x + 2] = two[x];
  }
}

void gather(const float* in, int64_t column_stride, int64_t channel_stride, int64_t columns,
            int64_t channels, float* out, int64_t out_stride) {
  if (channels == 3 && column_stride == 1 && out_stride == 3)
    return gather_three(in, channel_stride, columns, out);
  for (int64_t c0 = 0; c0 < channels; c0 += kLanes) {
    const int64_t c_end = channels - c0 < kLanes ? channels : c0 + kLanes;
    for (int64_t x0 = 0; x0 < columns; x0 += kLanes) {
      const float* from = in + x0 * column_stride + c0 * channel_stride;
      float* to = out + x0 * out_stride + c0;
      if (column_stride == 1 &&
          transpose_square(from, channel_stride, columns - x0, channels - c0, to, out_stride)) {
        continue;
      }
      const int64_t x_end = columns - x0 < kLanes ? columns : x0 + kLanes;
      for (int64_t x = x0; x < x_end; ++x) {
        for (int64_t c = c0; c < c_end; ++c) {
          out[x * out_stride + c] = in[x * column_stride + c * channel_stride];
        }
      }
    }
  }
}

void add(const float* in, int64_t in_stride, int64_t count, int64_t channels, float* out,
         int64_t out_stride) {
  for (int64_t i = 0; i < count; ++i) {
    const float* from = in + i * in_stride;
    float* to = out + i * out_stride;
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) store(to + c, load(to + c) + load(from + c));
    for (; c < channels; ++c) to[c] += from[c];
  }
}

void clamp_all(float* values, int64_t n, float low, float high) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(values + i, clamp(load(values + i), splat(low), splat(high)));
  }
  if (i < n) {
    store_some(values + i, clamp(load_first(values + i, n - i), splat(low), splat(high)), n - i);
  }
}

template <bool kMax, bool kPart>
inline Vec reduce_window(const PoolWindow<float>& w, int64_t c, int64_t part) {
  Vec result = kMax ? splat(-__builtin_inff()) : Vec{};
  IntVec nan = {};  // kept apart, so that the maximum does not wait for it
  for (int64_t y = 0; y < w.taps_y; ++y) {
    const float* in = w.in + y * w.y_stride + c;
    for (int64_t x = 0; x < w.taps_x; ++x) {
      const Vec v = kPart ? load_first(in, part) : load(in);
      if constexpr (kMax) {
        result = result > v ? result : v;
        nan |= v != v;
      } else {
        result += v;
      }
      in += w.x_stride;
    }
  }
  return nan != 0 ? splat(__builtin_nanf("")) : result;
}

template <bool kMax>
inline void pool(const PoolWindow<float>& window, int64_t channels, float factor, float* out) {
  const Vec scale = splat(factor);
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    const Vec result = reduce_window<kMax, false>(window, c, kLanes);
    store(out + c, kMax ? result : result * scale);
  }
  if (c < channels) {
    const Vec result = reduce_window<kMax, true>(window, c, channels - c);
    store_some(out + c, kMax ? result : result * scale, channels - c);
  }
}

void max(const PoolWindow<float>& window, int64_t channels, float* out) {
  pool<true>(window, channels, 1, out);
}
void sum(const PoolWindow<float>& window, int64_t channels, float factor, float* out) {
  pool<false>(window, channels, factor, out);
}

}  // namespace

const PixelLoops pixel_loops = {gather, add, clamp_all, max, sum};

}  // namespace rushlight::engine::RL_ISA
