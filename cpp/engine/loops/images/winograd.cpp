#include "rushlight/engine/loops/images/winograd.h"

#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

// The points are 0, +-sqrt(1/2), +-sqrt(2) and infinity: with them rounding errors are a third of
// those of 0, +-1, +-2. The division by the points' distances is part of the weights.
constexpr float kNear = 0.70710678118654752f;
constexpr float kFar = 1.41421356237309505f;

// d[0], d[stride], … become the tile's values at the points.
inline void to_points(Vec* d, int64_t stride) {
  const Vec d0 = d[0];
  const Vec d1 = d[stride];
  const Vec d2 = d[2 * stride];
  const Vec d3 = d[3 * stride];
  const Vec d4 = d[4 * stride];
  const Vec near_even = d4 - 2.0f * d2;
  const Vec near_odd = kNear * (d3 - 2.0f * d1);
  const Vec far_even = d4 - 0.5f * d2;
  const Vec far_odd = kFar * (d3 - 0.5f * d1);
  d[0] = d0 - 2.5f * d2 + d4;
  d[stride] = near_even + near_odd;
  d[2 * stride] = near_even - near_odd;
  d[3 * stride] = far_even + far_odd;
  d[4 * stride] = far_even - far_odd;
  d[5 * stride] = d1 - 2.5f * d3 + d[5 * stride];
}

// The values at the points become the four results m[0], m[stride], ….
inline void from_points(Vec* m, int64_t stride) {
  const Vec near_even = m[stride] + m[2 * stride];
  const Vec near_odd = kNear * (m[stride] - m[2 * stride]);
  const Vec far_even = m[3 * stride] + m[4 * stride];
  const Vec far_odd = kFar * (m[3 * stride] - m[4 * stride]);
  m[0] = m[0] + near_even + far_even;
  m[stride] = near_odd + far_odd;
  m[2 * stride] = 0.5f * near_even + 2.0f * far_even;
  m[3 * stride] = 0.5f * near_odd + 2.0f * far_odd + m[5 * stride];
}

constexpr int64_t kIn = kWinogradIn;
constexpr int64_t kOut = kWinogradOut;

void input(const WinogradInput& t) {
  // The offsets of pixels; pixels outside the image are read from its first one and set to zero.
  int64_t rows[kIn];
  int64_t columns[kIn];
  bool inside = true;
  bool row_there[kIn];
  bool column_there[kIn];
  for (int64_t i = 0; i < kIn; ++i) {
    row_there[i] = t.y + i >= 0 && t.y + i < t.height;
    column_there[i] = t.x + i >= 0 && t.x + i < t.width;
    rows[i] = row_there[i] ? (t.y + i) * t.row_stride : 0;
    columns[i] = column_there[i] ? (t.x + i) * t.column_stride : 0;
    inside = inside && row_there[i] && column_there[i];
  }
  for (int64_t c = 0; c < t.channels; c += kLanes) {
    Vec d[kIn * kIn];
#pragma GCC unroll 6
    for (int64_t y = 0; y < kIn; ++y) {
#pragma GCC unroll 6
      for (int64_t x = 0; x < kIn; ++x) d[y * kIn + x] = load(t.in + rows[y] + columns[x] + c);
    }
    if (!inside) {
      for (int64_t y = 0; y < kIn; ++y) {
        for (int64_t x = 0; x < kIn; ++x) {
          if (!row_there[y] || !column_there[x]) d[y * kIn + x] = Vec{};
        }
      }
    }
#pragma GCC unroll 6
    for (int64_t x = 0; x < kIn; ++x) to_points(d + x, kIn);
#pragma GCC unroll 6
    for (int64_t y = 0; y < kIn; ++y) {
      to_points(d + y * kIn, 1);
#pragma GCC unroll 6
      for (int64_t x = 0; x < kIn; ++x)
        store(t.out + (y * kIn + x) * t.out_stride + c, d[y * kIn + x]);
    }
  }
}

void output(const WinogradOutput& t) {
  const Vec low = splat(t.low);
  const Vec high = splat(t.high);
  for (int64_t c = 0; c < t.channels; c += kLanes) {
    Vec m[kIn * kIn];
#pragma GCC unroll 36
    for (int64_t p = 0; p < kIn * kIn; ++p) m[p] = load(t.in + p * t.in_stride + c);
#pragma GCC unroll 6
    for (int64_t x = 0; x < kIn; ++x) from_points(m + x, kIn);
#pragma GCC unroll 4
    for (int64_t y = 0; y < kOut; ++y) from_points(m + y * kIn, 1);
    const Vec bias = t.bias == nullptr ? Vec{} : load(t.bias + c);
    for (int64_t y = 0; y < kOut && y < t.rows; ++y) {
      float* const out = t.out + y * t.row_stride + c;
      const float* const residual =
          t.residual == nullptr ? nullptr : t.residual + y * t.residual_row + c;
      for (int64_t x = 0; x < kOut && x < t.columns; ++x) {
        Vec result = m[y * kIn + x] + bias;
        if (residual != nullptr) result += load(residual + x * t.residual_column);
        if (t.clamp) result = clamp(result, low, high);
        store(out + x * t.column_stride, result);
      }
    }
  }
}

}  // namespace

const WinogradLoops winograd_loops = {input, output};

}  // namespace rushlight::engine::RL_ISA
