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

inline void interleave_pixel(const uint8_t* const (&at)[kQuad], uint8_t* out) {
  const auto load = [](const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  __m512i v = _mm512_castsi128_si512(load(at[0]));
  v = _mm512_inserti32x4(v, load(at[1]), 1);
  v = _mm512_inserti32x4(v, load(at[2]), 2);
  v = _mm512_inserti32x4(v, load(at[3]), 3);
  // Four channels of all rows to each quarter, then the rows of each channel together.
  const __m512i quarters = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i turns =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  v = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(quarters, v), turns);
  _mm512_storeu_si512(out, v);
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

}  // namespace

const DotDepthwiseLoops dot_depthwise_loops = {interleave, sum};

}  // namespace rushlight::cpu::RL_ISA
