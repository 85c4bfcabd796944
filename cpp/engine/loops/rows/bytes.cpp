#include "rushlight/engine/loops/rows/bytes.h"

#include "rushlight/engine/loops/vectors/bytes.h"
#include "rushlight/engine/loops/vectors/transpose.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

void interleave(const uint8_t* const* planes, int64_t stride, int64_t columns, uint8_t* out,
                int64_t out_stride) {
  int64_t x = 0;
  if (stride == 1 && out_stride == 4) {
    for (; x + 16 <= columns; x += 16) {
      interleave_sixteen(planes[0] + x, planes[1] + x, planes[2] + x, planes[3] + x, out + x * 4);
    }
  }
  for (; x < columns; ++x) {
    for (int64_t j = 0; j < 4; ++j) out[x * out_stride + j] = planes[j][x * stride];
  }
}

// Loads a vector of a row's elements, of which `n` exist.
inline Block load_row(const uint8_t* p, int64_t stride, int64_t n) {
  if (stride == 1) return load_block(p, n);
  if (stride == 0) return splat_block(*p);
  Block v = {};
  uint8_t* const lanes = reinterpret_cast<uint8_t*>(&v);
  for (int64_t i = 0; i < (n < kBlock ? n : kBlock); ++i) lanes[i] = p[i * stride];
  return v;
}

inline void store_row(uint8_t* p, int64_t stride, int64_t n, Block v) {
  if (stride == 1) return store_block(p, v, n);
  const uint8_t* const lanes = reinterpret_cast<const uint8_t*>(&v);
  for (int64_t i = 0; i < (n < kBlock ? n : kBlock); ++i) p[i * stride] = lanes[i];
}

// Computes op(a, b) for four vectors of integers, and clamps it to bytes within low..high.
template <typename Op>
inline void combine_rows(const ByteRow& row, const Requantize& requantize, const Op& op) {
  const Block low = splat_block(static_cast<uint8_t>(requantize.low));
  const Block high = splat_block(static_cast<uint8_t>(requantize.high));
  for (int64_t i = 0; i < row.count; i += kBlock) {
    const int64_t n = row.count - i;
    const Quad a = widen(load_row(row.a + i * row.a_stride, row.a_stride, n));
    const Quad b = widen(load_row(row.b + i * row.b_stride, row.b_stride, n));
    Quad result;
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) result.v[v] = op(a.v[v], b.v[v]);
    store_row(row.out + i * row.out_stride, row.out_stride, n,
              min_block(max_block(narrow(result), low), high));
  }
}

void combine(const QuantizedBinary& binary, const ByteRow& row) {
  if (binary.kind == QuantizedBinaryKind::Multiply) {
    const RequantizeVec requantize(binary.requantize);
    const IntVec a_zero = splat_int(binary.a_zero_point);
    const IntVec b_zero = splat_int(binary.b_zero_point);
    const Vec multiplier = splat(binary.multiplier);
    return combine_rows(row, binary.requantize, [&](IntVec a, IntVec b) {
      return requantize.apply((a - a_zero) * (b - b_zero), multiplier);
    });
  }
  const SumVec sum(binary);
  combine_rows(row, binary.requantize, [&](IntVec a, IntVec b) { return sum.apply(a, b); });
}

// A table in registers, for processors with byte look-ups in registers.
#if defined(__AVX512BW__)

struct Table {
  __m512i parts[16];  // sixteen bytes each, repeated

  explicit Table(const uint8_t* table) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) {
      parts[i] =
          _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + i * 16)));
    }
  }
  Block at(Block places) const {
    const __m512i x = raw(places);
    const __m512i part = _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(0xf0)));
    const __m512i place = _mm512_and_si512(x, _mm512_set1_epi8(0x0f));
    __m512i result = _mm512_shuffle_epi8(parts[0], place);
#pragma GCC unroll 16
    for (int i = 1; i < 16; ++i) {
      const __mmask64 meant =
          _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8(static_cast<char>(i * 16)));
      result = _mm512_mask_shuffle_epi8(result, meant, parts[i], place);
    }
    return reinterpret_cast<Block>(result);
  }
};

#elif defined(RL_NEON)

struct Table {
  uint8x16x4_t parts[4];

  explicit Table(const uint8_t* table) {
    for (int i = 0; i < 4; ++i) parts[i] = vld1q_u8_x4(table + i * 64);
  }
  Block at(Block places) const {
    uint8x16_t place = reinterpret_cast<uint8x16_t>(places);
    uint8x16_t result = vqtbl4q_u8(parts[0], place);
    for (int i = 1; i < 4; ++i) {
      place = vsubq_u8(place, vdupq_n_u8(64));
      result = vqtbx4q_u8(result, parts[i], place);
    }
    return reinterpret_cast<Block>(result);
  }
};

#endif

void look_up(const ByteRow& row) {
  int64_t i = 0;
#if defined(__AVX512BW__) || defined(RL_NEON)
  const Table table(row.b);
  for (; i < row.count; i += kBlock) {
    const Block places = load_row(row.a + i * row.a_stride, row.a_stride, row.count - i);
    store_row(row.out + i * row.out_stride, row.out_stride, row.count - i, table.at(places));
  }
#else
  for (; i < row.count; ++i) row.out[i * row.out_stride] = row.b[row.a[i * row.a_stride]];
#endif
}

template <bool kWhole>
inline Block max_of_window(const PoolWindow<uint8_t>& w, int64_t c, int64_t n) {
  Block result = {};
  for (int64_t y = 0; y < w.taps_y; ++y) {
    const uint8_t* in = w.in + y * w.y_stride + c;
    for (int64_t x = 0; x < w.taps_x; ++x, in += w.x_stride) {
      result = max_block(result, kWhole ? load_block(in) : load_block(in, n));
    }
  }
  return result;
}

void max(const PoolWindow<uint8_t>& window, int64_t channels, uint8_t* out) {
  int64_t c = 0;
  for (; c + kBlock <= channels; c += kBlock) {
    store_block(out + c, max_of_window<true>(window, c, kBlock));
  }
  if (c < channels) {
    store_block(out + c, max_of_window<false>(window, c, channels - c), channels - c);
  }
}

constexpr int64_t kTerms = 256;  // bytes whose sum 16 bits hold

template <bool kWhole>
inline Quad sum_of_window(const PoolWindow<uint8_t>& w, int64_t c, int64_t n) {
  Quad sum = {};
  for (int64_t y = 0; y < w.taps_y; ++y) {
    const uint8_t* in = w.in + y * w.y_stride + c;
    for (int64_t left = w.taps_x; left > 0; left -= kTerms) {
      Halves part = {};
      for (int64_t x = left < kTerms ? left : kTerms; x > 0; --x, in += w.x_stride) {
        const Halves v = halve(kWhole ? load_block(in) : load_block(in, n));
        part.v[0] += v.v[0];
        part.v[1] += v.v[1];
      }
      const Quad wide = widen(part);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sum.v[v] += wide.v[v];
    }
  }
  return sum;
}

template <bool kWhole>
inline void average_block(const PoolWindow<uint8_t>& window, const ByteAverage& average, int64_t c,
                          int64_t n, uint8_t* out) {
  const RequantizeVec requantize(average.requantize);
  const IntVec start = splat_int(average.start);
  const Vec multiplier = splat(average.multiplier);
  const Vec offset = splat(average.offset);
  Quad sum = sum_of_window<kWhole>(window, c, n);
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const Vec mean = __builtin_convertvector(sum.v[v] + start, Vec) * multiplier;
    sum.v[v] = requantize.round(mean + offset);
  }
  store_block(out + c, narrow(sum), n);
}

void average(const PoolWindow<uint8_t>& window, const ByteAverage& average, int64_t channels,
             uint8_t* out) {
  int64_t c = 0;
  for (; c + kBlock <= channels; c += kBlock) {
    average_block<true>(window, average, c, kBlock, out);
  }
  if (c < channels) average_block<false>(window, average, c, channels - c, out);
}

}  // namespace

const ByteLoops byte_loops = {interleave, combine, look_up, max, average};

}  // namespace rushlight::engine::RL_ISA
