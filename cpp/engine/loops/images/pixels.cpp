#include "rushlight/engine/loops/images/pixels.h"

#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

// A square of channels by columns, turned. False if it is not whole.
inline bool turn_square(const float* in, int64_t channel_step, int64_t columns, int64_t channels,
                        float* out, int64_t out_step) {
  if (columns < kLanes || channels < kLanes) return false;
  Vec square[kLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) square[i] = load(in + i * channel_step);
  transpose(square);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) store(out + i * out_step, square[i]);
  return true;
}

void gather_three(const float* in, int64_t channel_step, int64_t columns, float* out) {
  const float* one = in + channel_step;
  const float* two = one + channel_step;
  for (int64_t x = 0; x < columns; ++x) {
    out[3 * x] = in[x];
    out[3 * x + 1] = one[x];
    out[3 * x + 2] = two[x];
  }
}

void gather(const float* in, int64_t column_step, int64_t channel_step, int64_t columns,
            int64_t channels, float* out, int64_t out_step) {
  if (channels == 3 && column_step == 1 && out_step == 3)
    return gather_three(in, channel_step, columns, out);
  for (int64_t c0 = 0; c0 < channels; c0 += kLanes) {
    const int64_t c_end = channels - c0 < kLanes ? channels : c0 + kLanes;
    for (int64_t x0 = 0; x0 < columns; x0 += kLanes) {
      const float* from = in + x0 * column_step + c0 * channel_step;
      float* to = out + x0 * out_step + c0;
      if (column_step == 1 &&
          turn_square(from, channel_step, columns - x0, channels - c0, to, out_step)) {
        continue;
      }
      const int64_t x_end = columns - x0 < kLanes ? columns : x0 + kLanes;
      for (int64_t x = x0; x < x_end; ++x) {
        for (int64_t c = c0; c < c_end; ++c) {
          out[x * out_step + c] = in[x * column_step + c * channel_step];
        }
      }
    }
  }
}

void add(const float* in, int64_t in_step, int64_t count, int64_t channels, float* out,
         int64_t out_step) {
  for (int64_t i = 0; i < count; ++i) {
    const float* from = in + i * in_step;
    float* to = out + i * out_step;
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
  IntVec nan = {};  // beside the maximum, which need not wait for it
  for (int64_t y = 0; y < w.taps_y; ++y) {
    const float* in = w.in + y * w.y_step + c;
    for (int64_t x = 0; x < w.taps_x; ++x) {
      const Vec v = kPart ? load_first(in, part) : load(in);
      if constexpr (kMax) {
        result = result > v ? result : v;
        nan |= v != v;
      } else {
        result += v;
      }
      in += w.x_step;
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
