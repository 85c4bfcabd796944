#include "rushlight/engine/loops/products/cached.h"
#include "rushlight/engine/loops/vectors/dot_sums.h"
#include "rushlight/engine/loops/vectors/edge.h"

namespace rushlight::engine::RL_ISA {
namespace {

// The most sums that stay in registers, and the most rows with three of them.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int kSums = 24;
constexpr int kRows = 7;
#else
constexpr int kSums = 12;
constexpr int kRows = 4;
#endif
constexpr int64_t kQuad = 4;
constexpr int64_t kQuadBytes = kKvBytePanel * kQuad;

// --- scores -------------------------------------------------------------------------------------

// kLanes keys: the sums of each row's high bytes with the keys' upper bits, of its low bytes with
// them, and of its high bytes with the keys' lower bits.
template <int H>
struct KeySums {
  IntVec high[H] = {};
  IntVec low[H] = {};
  IntVec rest[H] = {};
};

template <int H>
RL_INLINE void add_quad(KeySums<H>& sums, Lanes upper, Lanes lower, const uint8_t* high,
                        const uint8_t* low, int64_t stride) {
#pragma GCC unroll 8
  for (int i = 0; i < H; ++i) {
    const Quads q = quads_at(all_lanes(bytes_at(high + i * stride)));
    sums.high[i] = add_dot(sums.high[i], q, upper);
    sums.rest[i] = add_dot(sums.rest[i], q, lower);
    sums.low[i] = add_dot(sums.low[i], quads_at(all_lanes(bytes_at(low + i * stride))), upper);
  }
}

template <int H>
void score_rows(const CachedTile& t, int64_t row, const int32_t* row_sums, float* scores) {
  const KvPageShape& shape = *t.shape;
  const int64_t panel_bytes = kKvBytePanel * shape.key_width;
  for (int64_t j = t.first; j < t.keys; j += kLanes) {
    const int64_t page = j / kKvTokens;
    const int64_t at = j % kKvTokens;
    const int64_t lane = at % kKvBytePanel * kQuad;
    const int64_t offset = at / kKvBytePanel * panel_bytes;
    const uint8_t* upper = t.heads[page] + offset + lane;
    const uint8_t* lower = t.heads[page] + shape.low_keys + offset / 2 + lane;
    const auto* ahead = reinterpret_cast<const char*>(t.ahead[page] + offset);
    const uint8_t* high = t.high + row * t.stride;
    const uint8_t* low = t.low + row * t.stride;
    KeySums<H> sums;
    for (int64_t w = shape.key_width; w > 0; w -= 2 * kQuad) {
      const IntVec both = load_lanes(lower);
      const IntVec first = load_lanes(upper);
      const IntVec second = load_lanes(upper + kQuadBytes);
      add_quad(sums, lanes_at(first), lanes_at(both & 0x0f0f0f0f), high, low, t.stride);
      add_quad(sums, lanes_at(second), lanes_at((both >> 4) & 0x0f0f0f0f), high + kQuad,
               low + kQuad, t.stride);
      if (lane == 0 && row == 0) {
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(ahead + kQuadBytes, 0, 2);
        ahead += 2 * kQuadBytes;
      }
      upper += 2 * kQuadBytes;
      lower += kQuadBytes;
      high += 2 * kQuad;
      low += 2 * kQuad;
    }
    const Vec key_scales =
        load_weights(reinterpret_cast<const uint16_t*>(t.heads[page] + shape.key_scales) + at);
#pragma GCC unroll 8
    for (int i = 0; i < H; ++i) {
      // Upper bits are stored plus 128, and add_dot() subtracts kOffset from the bytes of keys.
      const int32_t highs = row_sums[2 * (row + i)];
      const int32_t lows = row_sums[2 * (row + i) + 1];
      const IntVec high_sum = wrap_add(sums.high[i], splat_int(-(128 - kOffset) * highs));
      const IntVec low_sum = wrap_add(sums.low[i], splat_int(-(128 - kOffset) * lows));
      const IntVec rest = wrap_add(sums.rest[i], splat_int(kOffset * highs));
      // Of 16 * upper + lower and 256 * high + low; the least part, low * lower, is left out.
      const Vec number =
          to_floats(high_sum) * 4096.0f + (to_floats(low_sum) * 16.0f + to_floats(rest) * 256.0f);
      store(scores + (row + i) * kScoreStride + j, number * t.scales[row + i] * key_scales);
    }
  }
}

// --- values -------------------------------------------------------------------------------------

// Columns from `column` on, V vectors of them.
template <int H, int V>
void add_columns(const CachedTile& t, int64_t row, int64_t column, float* out, int64_t out_stride) {
  const KvPageShape& shape = *t.shape;
  const int64_t quad_bytes = shape.value_width * kQuad;
  IntVec high[H][V] = {};
  IntVec low[H][V] = {};
  IntVec offsets[V] = {};
  for (int64_t j = t.first; j < t.keys; j += kKvTokens) {
    const int64_t page = j / kKvTokens;
    const uint8_t* values = t.heads[page] + shape.values + column * kQuad;
    const auto* ahead =
        reinterpret_cast<const char*>(t.ahead[page] + shape.values + column * kQuad);
    const int64_t left = t.keys - j < kKvTokens ? t.keys - j : kKvTokens;
    for (int64_t at = 0; at < left; at += kQuad) {
      Quads quads[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        quads[v] = quads_at(load_lanes(values + v * kLanes * kQuad));
        if constexpr (kOffset != 0) offsets[v] = add_dot(offsets[v], quads[v], quad_of(0));
        if (row == 0) __builtin_prefetch(ahead + v * kLanes * kQuad, 0, 2);
      }
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) {
        const int64_t from = (row + i) * t.stride + j + at;
        const RowQuad highs = quad_of(bytes_at(t.high + from));
        const RowQuad lows = quad_of(bytes_at(t.low + from));
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          high[i][v] = add_dot(high[i][v], quads[v], highs);
          low[i][v] = add_dot(low[i][v], quads[v], lows);
        }
      }
      values += quad_bytes;
      ahead += quad_bytes;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < H; ++i) {
    float* const to = out + (row + i) * out_stride + column;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const IntVec one = kOffset != 0 ? high[i][v] - offsets[v] : high[i][v];
      const IntVec two = kOffset != 0 ? low[i][v] - offsets[v] : low[i][v];
      const Vec number = to_floats(one) * 256.0f + to_floats(two);
      store(to + v * kLanes, load(to + v * kLanes) + number * t.scales[row + i]);
    }
  }
}

template <int H>
void add_rows(const CachedTile& t, int64_t row, float* out, int64_t out_stride) {
  constexpr int V = 4 * H + 2 > kSums ? 1 : 2;
  int64_t column = 0;
  for (; column + V * kLanes <= t.shape->value_width; column += V * kLanes) {
    add_columns<H, V>(t, row, column, out, out_stride);
  }
  for (; column < t.shape->value_width; column += kLanes) {
    add_columns<H, 1>(t, row, column, out, out_stride);
  }
}

// --- tiles --------------------------------------------------------------------------------------

using ScoreFn = void (*)(const CachedTile&, int64_t, const int32_t*, float*);
using AddFn = void (*)(const CachedTile&, int64_t, float*, int64_t);

template <int H>
constexpr ScoreFn score_or_null() noexcept {
  if constexpr (H <= kRows) {
    return score_rows<H>;
  } else {
    return nullptr;
  }
}
template <int H>
constexpr AddFn add_or_null() noexcept {
  if constexpr (H <= kRows) {
    return add_rows<H>;
  } else {
    return nullptr;
  }
}
constexpr ScoreFn kScore[] = {score_or_null<1>(), score_or_null<2>(), score_or_null<3>(),
                              score_or_null<4>(), score_or_null<5>(), score_or_null<6>(),
                              score_or_null<7>()};
constexpr AddFn kAdd[] = {add_or_null<1>(), add_or_null<2>(), add_or_null<3>(), add_or_null<4>(),
                          add_or_null<5>(), add_or_null<6>(), add_or_null<7>()};

void score(const CachedTile& t, const int32_t* sums, float* scores) {
  for (int64_t row = 0; row < t.rows; row += kRows) {
    const int64_t left = t.rows - row < kRows ? t.rows - row : kRows;
    kScore[left - 1](t, row, sums, scores);
  }
}

void add_values(const CachedTile& t, float* out, int64_t out_stride) {
  for (int64_t row = 0; row < t.rows; row += kRows) {
    const int64_t left = t.rows - row < kRows ? t.rows - row : kRows;
    kAdd[left - 1](t, row, out, out_stride);
  }
}

}  // namespace

const CachedDotLoops cached_dot_loops = {score, add_values};

}  // namespace rushlight::engine::RL_ISA
