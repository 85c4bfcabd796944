#include "rushlight/backends/cpu/loops/dot_depthwise.h"

#include "rushlight/backends/cpu/loops/vec_dot.h"

namespace rushlight::cpu::RL_ISA {
namespace {

constexpr int kPanelVectors = kPanel / kLanes;
// Pixels whose sums stay in registers beside weights, one vector of channels each.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int kPixels = 8;
#else
constexpr int kPixels = 4;
#endif

// --- four rows by turns -------------------------------------------------------------------------

// kPanel bytes of each of four rows.
#if defined(__AVX512BW__)

// kRows: how many of them count.
template <int kRows = kQuad>
inline __m512i interleaved(const uint8_t* const (&at)[kQuad], int64_t offset) {
  const auto load = [&](int j) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[j] + offset));
  };
  __m512i v = _mm512_castsi128_si512(load(0));
  v = _mm512_inserti32x4(v, load(1), 1);
  v = _mm512_inserti32x4(v, load(2), 2);
  if constexpr (kRows == kQuad) v = _mm512_inserti32x4(v, load(3), 3);
  // Four channels of all rows to each quarter, then the rows of each channel together.
  const __m512i quarters = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i turns =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, v), turns);
}

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  _mm512_storeu_si512(out, interleaved(at, 0));
}

#elif defined(__SSE2__)

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  const auto load = [](const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  const auto store = [&](int i, __m128i v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, v);
  };
  const __m128i a = load(at[0]);
  const __m128i b = load(at[1]);
  const __m128i c = load(at[2]);
  const __m128i d = load(at[3]);
  const __m128i low[] = {_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d)};
  const __m128i high[] = {_mm_unpackhi_epi8(a, b), _mm_unpackhi_epi8(c, d)};
  store(0, _mm_unpacklo_epi16(low[0], low[1]));
  store(1, _mm_unpackhi_epi16(low[0], low[1]));
  store(2, _mm_unpacklo_epi16(high[0], high[1]));
  store(3, _mm_unpackhi_epi16(high[0], high[1]));
}

#elif defined(RL_NEON)

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  vst4q_u8(out, {{vld1q_u8(at[0]), vld1q_u8(at[1]), vld1q_u8(at[2]), vld1q_u8(at[3])}});
}

#else

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  for (int64_t i = 0; i < kQuadBytes; ++i) out[i] = at[i % kQuad][i / kQuad];
}

#endif

void interleave(const QuadRows& given, uint8_t* out) {
  const uint8_t* at[kQuad] = {given.rows[0], given.rows[1], given.rows[2], given.rows[3]};
  const bool whole = given.channels == kPanel && given.repeats == 1;
  uint8_t pixels[kQuad][kPanel] = {};
  const uint8_t* const copies[kQuad] = {pixels[0], pixels[1], pixels[2], pixels[3]};
  for (int64_t x = 0; x < given.columns; ++x, out += kQuadBytes) {
    if (whole) {
      interleave_pixel(at, out);
    } else {
      for (int64_t j = 0; j < kQuad; ++j) {
        for (int64_t c = 0; c < given.channels; ++c) {
          pixels[j][c] = at[j][(given.first + c) / given.repeats];
        }
      }
      interleave_pixel(copies, out);
    }
    for (int64_t j = 0; j < kQuad; ++j) at[j] += given.steps[j];
  }
}

// --- sums ---------------------------------------------------------------------------------------

inline IntVec load_lanes(const uint8_t* p) { return load_int(reinterpret_cast<const int32_t*>(p)); }

// N neighbouring pixels of vector `v` of the panel.
template <int N>
inline void sum_pixels(const DepthwiseSums& t, int64_t pixel, int v) {
  const int64_t offset = v * kLanes * kQuad;
  const uint8_t* quads = t.quads + pixel * t.pixel_step + offset;
  const uint8_t* weights = t.weights + offset;
  IntVec sums[N] = {};
  IntVec correction = {};  // see kOffset
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const Quads b = quads_at(load_lanes(weights));
    if constexpr (kOffset != 0) correction = add_dot(correction, b, lanes_at(IntVec{}));
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      sums[i] = add_dot(sums[i], b, lanes_at(load_lanes(quads + i * t.pixel_step)));
    }
    quads += t.tap_step;
    weights += kQuadBytes;
  }
  int32_t* out = t.sums + pixel * t.sums_step + v * kLanes;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i, out += t.sums_step) {
    IntVec sum = sums[i] - correction;
    if (t.add) sum += load_int(out);
    store_int(out, sum);
  }
}

void sum(const DepthwiseSums& t) {
  for (int v = 0; v < kPanelVectors; ++v) {
    int64_t pixel = 0;
    for (; pixel + kPixels <= t.pixels; pixel += kPixels) sum_pixels<kPixels>(t, pixel, v);
    if (pixel + kPixels - 1 == t.pixels) {  // seven of the images that networks end with
      sum_pixels<kPixels - 1>(t, pixel, v);
      continue;
    }
    for (; pixel + 2 <= t.pixels; pixel += 2) sum_pixels<2>(t, pixel, v);
    if (pixel < t.pixels) sum_pixels<1>(t, pixel, v);
  }
}

// --- 3 by 3 taps without a way through memory ----------------------------------------------------

#if defined(__AVX512BW__)

// Sums as bytes, four pixels at a time.
class PixelWriter {
 public:
  explicit PixelWriter(const DepthwiseRows& t)
      : multipliers_(load(t.multipliers)),
        most_(_mm512_set1_ps(static_cast<float>(t.requantize.high - t.requantize.zero_point))),
        zero_point_(_mm512_set1_epi16(static_cast<int16_t>(t.requantize.zero_point))),
        low_(_mm512_set1_epi8(static_cast<char>(t.requantize.low))),
        high_(_mm512_set1_epi8(static_cast<char>(t.requantize.high))) {}

  void write(IntVec a, IntVec b, IntVec c, IntVec d, uint8_t* const (&out)[4]) const {
    const __m512i low = _mm512_packs_epi32(scaled(a), scaled(b));
    const __m512i high = _mm512_packs_epi32(scaled(c), scaled(d));
    __m512i v = _mm512_packus_epi16(_mm512_adds_epi16(low, zero_point_),
                                    _mm512_adds_epi16(high, zero_point_));
    v = _mm512_min_epu8(_mm512_max_epu8(v, low_), high_);
    const __m512i pixels = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    v = _mm512_permutexvar_epi32(pixels, v);
    store(out[0], _mm512_castsi512_si128(v));
    store(out[1], _mm512_extracti32x4_epi32(v, 1));
    store(out[2], _mm512_extracti32x4_epi32(v, 2));
    store(out[3], _mm512_extracti32x4_epi32(v, 3));
  }

 private:
  // Too small a number, and NaN, becomes the least integer, which the narrowing saturates.
  __m512i scaled(IntVec sum) const {
    const __m512 number = _mm512_mul_ps(to_float(sum), multipliers_);
    return _mm512_cvtps_epi32(_mm512_min_ps(most_, number));
  }
  static __m512 to_float(IntVec v) { return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(v)); }
  static void store(uint8_t* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }

  const __m512 multipliers_, most_;
  const __m512i zero_point_, low_, high_;
};

// Columns of an image, of which kRows rows count.
template <int kRows>
class Columns {
 public:
  explicit Columns(const DepthwiseRows& t)
      : rows_{t.rows[0], t.rows[1], t.rows[2], t.rows[3]},
        step_(t.column_step),
        first_(t.first),
        columns_(static_cast<uint64_t>(t.columns)),
        padding_(lanes_at(all_lanes(t.padding * 0x01010101u))) {}
  // Counted from the first tap of the first result on.
  Lanes at(int64_t column) const {
    const int64_t x = first_ + column;
    if (static_cast<uint64_t>(x) >= columns_) return padding_;
    return lanes_at(reinterpret_cast<IntVec>(interleaved<kRows>(rows_, x * step_)));
  }

 private:
  const uint8_t* const rows_[kQuad];
  const int64_t step_, first_;
  const uint64_t columns_;
  const Lanes padding_;
};

// The second row's weights are the first one's, a byte further on.
void two_rows(const DepthwiseRows& t) {
  const Columns<4> columns(t);
  const PixelWriter writer(t);
  const IntVec start = load_int(t.start);
  Quads w[2][3];
#pragma GCC unroll 3
  for (int tap = 0; tap < 3; ++tap) {
    const IntVec weights = load_lanes(t.weights + tap * kQuadBytes);
    w[0][tap] = quads_at(weights);
    w[1][tap] = quads_at(weights << 8);
  }
  alignas(16) uint8_t nowhere[kPanel];
  IntVec one[2], two[2];  // sums of which one column, or two, are there
  Lanes v = columns.at(0);
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) two[r] = add_dot(start, w[r][0], v);
  v = columns.at(1);
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    two[r] = add_dot(two[r], w[r][1], v);
    one[r] = add_dot(start, w[r][0], v);
  }
  const bool has_below = t.n_rows > 1;
  const int64_t step = t.out_step;
  const int64_t below = t.out_row_step;
  const int64_t pixels = t.pixels;
  uint8_t* out = t.out;
  for (int64_t pixel = 0; pixel < pixels; pixel += 2, out += 2 * step) {
    IntVec done[2][2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      v = columns.at(pixel + 2 + i);
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        done[i][r] = add_dot(two[r], w[r][2], v);
        two[r] = add_dot(one[r], w[r][1], v);
        one[r] = add_dot(start, w[r][0], v);
      }
    }
    const bool has_next = pixel + 1 < pixels;
    uint8_t* const to[] = {out, has_below ? out + below : nowhere, has_next ? out + step : nowhere,
                           has_next && has_below ? out + step + below : nowhere};
    writer.write(done[0][0], done[0][1], done[1][0], done[1][1], to);
  }
}

void one_row(const DepthwiseRows& t) {
  const Columns<3> columns(t);
  const PixelWriter writer(t);
  const IntVec start = load_int(t.start);
  Quads w[3];
#pragma GCC unroll 3
  for (int tap = 0; tap < 3; ++tap) w[tap] = quads_at(load_lanes(t.weights + tap * kQuadBytes));
  alignas(16) uint8_t nowhere[kPanel];
  const int64_t step = t.out_step;
  const int64_t pixels = t.pixels;
  uint8_t* out = t.out;
  IntVec one = add_dot(start, w[0], columns.at(0));
  for (int64_t pixel = 0; pixel < pixels; pixel += 4, out += 4 * step) {
    IntVec done[4];
    uint8_t* to[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int64_t column = 2 * (pixel + i);
      done[i] = add_dot(one, w[1], columns.at(column + 1));
      const Lanes last = columns.at(column + 2);
      done[i] = add_dot(done[i], w[2], last);
      one = add_dot(start, w[0], last);
      to[i] = pixel + i < pixels ? out + i * step : nowhere;
    }
    writer.write(done[0], done[1], done[2], done[3], {to[0], to[1], to[2], to[3]});
  }
}

#define RL_ROWS {two_rows, one_row}
#else
#define RL_ROWS {nullptr, nullptr}
#endif

}  // namespace

const DotDepthwiseLoops dot_depthwise_loops = {interleave, sum, RL_ROWS};

}  // namespace rushlight::cpu::RL_ISA
