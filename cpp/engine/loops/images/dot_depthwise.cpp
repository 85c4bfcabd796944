#include "rushlight/engine/loops/images/dot_depthwise.h"

#include "rushlight/engine/loops/vectors/dot.h"
#include "rushlight/engine/loops/vectors/transpose.h"

namespace rushlight::engine::RL_ISA {
namespace {

constexpr int kPanelVectors = kPanel / kLanes;
// How many pixels, with one vector of channels each, have sums that stay in registers beside the
// weights.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int kPixels = 8;
#else
constexpr int kPixels = 4;
#endif

// --- four rows, interleaved ---------------------------------------------------------------------

// Interleaves kPanel bytes of each of four rows.
#if defined(__AVX512BW__)

// kRows: how many rows there are; the missing ones are zeros.
template <int kRows = kQuad>
inline __m512i interleaved(const uint8_t* const (&at)[kQuad], int64_t offset) {
  const auto load = [&](int j) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[j] + offset));
  };
  // Masked broadcasts cost less than moves between quarters.
  __m512i v = _mm512_zextsi128_si512(load(0));
  v = _mm512_mask_broadcast_i32x4(v, 0x00f0, load(1));
  v = _mm512_mask_broadcast_i32x4(v, 0x0f00, load(2));
  if constexpr (kRows == kQuad) v = _mm512_mask_broadcast_i32x4(v, 0xf000, load(3));
  // Four channels of all rows to each quarter, then the rows of each channel together.
  const __m512i quarters = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i rows_of_channel =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, v), rows_of_channel);
}

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  _mm512_storeu_si512(out, interleaved(at, 0));
}

#else

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  interleave_sixteen(at[0], at[1], at[2], at[3], out);
}

#endif

void interleave(const QuadRows& quad, uint8_t* out) {
  const uint8_t* at[kQuad] = {quad.rows[0], quad.rows[1], quad.rows[2], quad.rows[3]};
  const bool whole = quad.channels == kPanel && quad.repeats == 1;
  uint8_t pixels[kQuad][kPanel] = {};
  const uint8_t* const copies[kQuad] = {pixels[0], pixels[1], pixels[2], pixels[3]};
  for (int64_t x = 0; x < quad.columns; ++x, out += kQuadBytes) {
    if (whole) {
      interleave_pixel(at, out);
    } else {
      for (int64_t j = 0; j < kQuad; ++j) {
        for (int64_t c = 0; c < quad.channels; ++c) {
          pixels[j][c] = at[j][(quad.first + c) / quad.repeats];
        }
      }
      interleave_pixel(copies, out);
    }
    for (int64_t j = 0; j < kQuad; ++j) at[j] += quad.strides[j];
  }
}

// --- sums ---------------------------------------------------------------------------------------

// N neighbouring pixels of vector `v` of the panel.
template <int N>
inline void sum_pixels(const DepthwiseSums& t, int64_t pixel, int v) {
  const int64_t offset = v * kLanes * kQuad;
  const uint8_t* quads = t.quads + pixel * t.pixel_stride + offset;
  const uint8_t* weights = t.weights + offset;
  IntVec sums[N] = {};
  IntVec correction = {};  // see kOffset
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const Quads b = quads_at(load_lanes(weights));
    if constexpr (kOffset != 0) correction = add_dot(correction, b, lanes_at(IntVec{}));
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      sums[i] = add_dot(sums[i], b, lanes_at(load_lanes(quads + i * t.pixel_stride)));
    }
    quads += t.tap_stride;
    weights += kQuadBytes;
  }
  int32_t* out = t.sums + pixel * t.sums_stride + v * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i, out += t.sums_stride) {
    IntVec sum = sums[i] - correction;
    if (t.add) sum += load_int(out);
    store_int(out, sum);
  }
}

void sum(const DepthwiseSums& t) {
  for (int v = 0; v < kPanelVectors; ++v) {
    int64_t pixel = 0;
    for (; pixel + kPixels <= t.pixels; pixel += kPixels) sum_pixels<kPixels>(t, pixel, v);
    if (pixel + kPixels - 1 == t.pixels) {  // seven columns, as in the last images of many networks
      sum_pixels<kPixels - 1>(t, pixel, v);
      continue;
    }
    for (; pixel + 2 <= t.pixels; pixel += 2) sum_pixels<2>(t, pixel, v);
    if (pixel < t.pixels) sum_pixels<1>(t, pixel, v);
  }
}

// --- 3 by 3 taps in registers ----------------------------------------------------

#if defined(__AVX512BW__)

// Four panels of channels of a pixel are four vectors of lanes, each of four channels of every
// panel: that is how bytes of four rows are interleaved, and how sums become bytes, without
// crossing quarters of a vector. A single panel is one vector, in order.
constexpr int kWide = 4;

// Columns of the rows of a band.
template <int V, int kRows>
class Columns {
 public:
  Columns(const DepthwiseBands& t, int64_t band, int64_t channel)
      : stride_(t.column_stride),
        first_(t.first),
        columns_(static_cast<uint64_t>(t.columns)),
        padding_(lanes_at(all_lanes(t.padding * 0x01010101u))) {
    for (int64_t j = 0; j < kQuad; ++j) rows_[j] = t.rows[2 * band + (j < kRows ? j : 0)] + channel;
  }
  // `column` counts from the first tap of the first result.
  void get(int64_t column, Lanes (&v)[V]) const {
    const int64_t x = first_ + column;
    if (static_cast<uint64_t>(x) < columns_) {
      IntVec bytes[V];
      int64_t offset = x * stride_;
      asm("" : "+r"(offset));  // or compilers keep more of them than there are registers
      interleave(rows_, offset, bytes);
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) v[i] = lanes_at(bytes[i]);
      return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) v[i] = padding_;
  }

  // Interleaves the rows from byte `offset` on; kRows of them exist, the others are zeros.
  static void interleave(const uint8_t* const (&rows)[kQuad], int64_t offset, IntVec (&v)[V]) {
    if constexpr (V == 1) {
      v[0] = reinterpret_cast<IntVec>(interleaved<kRows>(rows, offset));
    } else {
      const auto load = [&](int j) {
        return j < kRows ? _mm512_loadu_si512(rows[j] + offset) : _mm512_setzero_si512();
      };
      const __m512i low[] = {_mm512_unpacklo_epi8(load(0), load(1)),
                             _mm512_unpacklo_epi8(load(2), load(3))};
      const __m512i high[] = {_mm512_unpackhi_epi8(load(0), load(1)),
                              _mm512_unpackhi_epi8(load(2), load(3))};
      v[0] = reinterpret_cast<IntVec>(_mm512_unpacklo_epi16(low[0], low[1]));
      v[1] = reinterpret_cast<IntVec>(_mm512_unpackhi_epi16(low[0], low[1]));
      v[2] = reinterpret_cast<IntVec>(_mm512_unpacklo_epi16(high[0], high[1]));
      v[3] = reinterpret_cast<IntVec>(_mm512_unpackhi_epi16(high[0], high[1]));
    }
  }

 private:
  const uint8_t* rows_[kQuad];
  const int64_t stride_, first_;
  const uint64_t columns_;
  const Lanes padding_;
};

// The constants of some channels, in the order of the vectors' lanes.
template <int V, int kResults>
struct Channels {
  Quads weights[kResults][3][V];  // for the second row of results, moved by one byte
  IntVec start[V];
  Vec multipliers[V];
  __m512 most;
  __m512i zero_point, low, high;

  Channels(const DepthwiseBands& t, int64_t channel) {
    for (int tap = 0; tap < 3; ++tap) {
      const uint8_t* rows[kQuad] = {};
      for (int j = 0; j < 3; ++j) rows[j] = t.weights + (3 * j + tap) * t.tap_stride + channel;
      IntVec quads[V];
      Columns<V, 3>::interleave(rows, 0, quads);
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) {
        weights[0][tap][i] = quads_at(quads[i]);
        if constexpr (kResults == 2) weights[1][tap][i] = quads_at(quads[i] << 8);
      }
    }
    for (int i = 0; i < V; ++i) {
      start[i] = in_order(t.start + channel, i);
      multipliers[i] = reinterpret_cast<Vec>(
          in_order(reinterpret_cast<const int32_t*>(t.multipliers + channel), i));
    }
    const Requantize& r = t.requantize;
    most = _mm512_set1_ps(static_cast<float>(r.high - r.zero_point));
    zero_point = _mm512_set1_epi16(static_cast<int16_t>(r.zero_point));
    low = _mm512_set1_epi8(static_cast<char>(r.low));
    high = _mm512_set1_epi8(static_cast<char>(r.high));
  }

  // Narrows four vectors of sums to bytes. Numbers that are too small, and NaN, become the least
  // integer first, which the narrowing saturates.
  __m512i bytes(const IntVec (&sums)[4]) const {
    __m512i v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512 number = _mm512_mul_ps(to_floats(sums[i]), multipliers[V == 1 ? 0 : i]);
      v[i] = _mm512_cvtps_epi32(_mm512_min_ps(most, number));
    }
    const __m512i packed =
        _mm512_packus_epi16(_mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero_point),
                            _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero_point));
    return _mm512_min_epu8(_mm512_max_epu8(packed, low), high);
  }

 private:
  static IntVec in_order(const int32_t* p, int i) {
    if constexpr (V == 1) return load_int(p);
    IntVec v;
    for (int lane = 0; lane < kLanes; ++lane) v[lane] = p[lane / 4 * 16 + i * 4 + lane % 4];
    return v;
  }
};

// Stores the four pixels of a panel that are interleaved in a vector.
inline void store_pixels(__m512i v, uint8_t* const (&out)[4]) {
  const __m512i pixels = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  v = _mm512_permutexvar_epi32(pixels, v);
  const auto store = [](uint8_t* p, __m128i pixel) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), pixel);
  };
  store(out[0], _mm512_castsi512_si128(v));
  store(out[1], _mm512_extracti32x4_epi32(v, 1));
  store(out[2], _mm512_extracti32x4_epi32(v, 2));
  store(out[3], _mm512_extracti32x4_epi32(v, 3));
}

// The sums of a column of R rows of results, to which the columns of an image are added one by one.
template <int V, int R>
struct Sliding {
  IntVec one[R][V], two[R][V];  // sums of one column of taps, and of two

  // With stride 1: `done` are the sums that are complete now.
  void add(const Channels<V, R>& c, const Lanes (&v)[V], IntVec (&done)[R][V]) {
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) {
        done[r][i] = add_dot(two[r][i], c.weights[r][2][i], v[i]);
        two[r][i] = add_dot(one[r][i], c.weights[r][1][i], v[i]);
        one[r][i] = add_dot(c.start[i], c.weights[r][0][i], v[i]);
      }
    }
  }
};

template <int V>
void two_rows(const DepthwiseBands& t, const Channels<V, 2>& c, int64_t band, int64_t channel) {
  const Columns<V, 4> columns(t, band, channel);
  const int64_t stride = t.out_stride;
  const int64_t pixels = t.pixels;
  alignas(64) uint8_t nowhere[V * kPanel];
  uint8_t* out = t.out + 2 * band * t.out_row_stride + channel;
  // Where the second row is stored. It has a place even if it is not needed: with a branch for each
  // pixel, compilers move the computation into the branch.
  const bool has_below = 2 * band + 1 < t.n_rows;
  uint8_t* below = has_below ? out + t.out_row_stride : nowhere;
  const int64_t below_stride = has_below ? stride : 0;
  Sliding<V, 2> sums = {};
  IntVec done[2][2][V];
  Lanes v[V];
#pragma GCC unroll 2
  for (int64_t column = 0; column < 2; ++column) {
    columns.get(column, v);
    sums.add(c, v, done[0]);
  }
  if constexpr (V == 1) {
    for (int64_t pixel = 0; pixel < pixels; pixel += 2) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        columns.get(pixel + 2 + i, v);
        sums.add(c, v, done[i]);
      }
      const __m512i bytes = c.bytes({done[0][0][0], done[0][1][0], done[1][0][0], done[1][1][0]});
      if (pixel + 1 < pixels) {
        store_pixels(bytes, {out, below, out + stride, below + below_stride});
      } else {
        store_pixels(bytes, {out, below, nowhere, nowhere});
      }
      out += 2 * stride;
      below += 2 * below_stride;
    }
  } else {
    for (int64_t pixel = 0; pixel < pixels; ++pixel, out += stride, below += below_stride) {
      columns.get(pixel + 2, v);
      sums.add(c, v, done[0]);
      _mm512_storeu_si512(out, c.bytes(done[0][0]));
      _mm512_storeu_si512(below, c.bytes(done[0][1]));
    }
  }
}

template <int V>
void one_row(const DepthwiseBands& t, const Channels<V, 1>& c, int64_t band, int64_t channel) {
  const Columns<V, 3> columns(t, band, channel);
  const int64_t stride = t.out_stride;
  const int64_t pixels = t.pixels;
  uint8_t* out = t.out + band * t.out_row_stride + channel;
  alignas(64) uint8_t nowhere[kPanel];
  constexpr int kAtOnce = V == 1 ? 4 : 1;
  IntVec sums[V];
  Lanes v[V];
  columns.get(0, v);
#pragma GCC unroll 4
  for (int i = 0; i < V; ++i) sums[i] = add_dot(c.start[i], c.weights[0][0][i], v[i]);
  for (int64_t pixel = 0; pixel < pixels; pixel += kAtOnce, out += kAtOnce * stride) {
    IntVec done[4];
#pragma GCC unroll 4
    for (int p = 0; p < kAtOnce; ++p) {
      const int64_t column = 2 * (pixel + p);
      columns.get(column + 1, v);
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) sums[i] = add_dot(sums[i], c.weights[0][1][i], v[i]);
      columns.get(column + 2, v);
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) {
        done[p + i] = add_dot(sums[i], c.weights[0][2][i], v[i]);
        sums[i] = add_dot(c.start[i], c.weights[0][0][i], v[i]);
      }
    }
    if constexpr (V == 1) {
      const __m512i bytes = c.bytes(done);
      if (pixel + 4 <= pixels) {
        store_pixels(bytes, {out, out + stride, out + 2 * stride, out + 3 * stride});
        continue;
      }
      const auto at = [&](int64_t p) { return pixel + p < pixels ? out + p * stride : nowhere; };
      store_pixels(bytes, {out, at(1), at(2), nowhere});
    } else {
      _mm512_storeu_si512(out, c.bytes(done));
    }
  }
}

// Bands first..last-1 of V panels from `channel` on.
template <int V, int kStride>
__attribute__((noinline)) void run_panels(const DepthwiseBands& t, int64_t channel, int64_t first,
                                          int64_t last) {
  const Channels<V, 3 - kStride> channels(t, channel);
  for (int64_t band = first; band < last; ++band) {
    if constexpr (kStride == 1) {
      two_rows<V>(t, channels, band, channel);
    } else {
      one_row<V>(t, channels, band, channel);
    }
  }
}

template <int kStride>
void run_bands(const DepthwiseBands& t) {
  int64_t channel = 0;
  for (; channel + kWide * kPanel <= t.channels; channel += kWide * kPanel) {
    run_panels<kWide, kStride>(t, channel, 0, t.bands);
  }
  // Panels that share cache lines are computed together, while the lines are in the first-level
  // cache.
  for (int64_t band = 0; band < t.bands; ++band) {
    for (int64_t c = channel; c < t.channels; c += kPanel) {
      run_panels<1, kStride>(t, c, band, band + 1);
    }
  }
}

#define RL_BANDS {run_bands<1>, run_bands<2>}
#else
#define RL_BANDS {nullptr, nullptr}
#endif

}  // namespace

const DotDepthwiseLoops dot_depthwise_loops = {interleave, sum, RL_BANDS};

}  // namespace rushlight::engine::RL_ISA
