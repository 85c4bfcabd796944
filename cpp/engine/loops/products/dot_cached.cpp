#include "rushlight/engine/loops/products/cached.h"
#include "rushlight/engine/loops/vectors/dot_sums.h"
#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/pairs.h"

namespace rushlight::engine::RL_ISA {
namespace {

// The most sums that stay in registers, the most rows with two of them and a vector of values, and
// the most rows of scores.
#if defined(__AVX512F__) || defined(RL_NEON)
constexpr int kSums = 24;
constexpr int kRows = 7;
#else
constexpr int kSums = 12;
constexpr int kRows = 4;
#endif
#if defined(__AVX512F__)
constexpr int kScoreRows = 14;
#elif defined(RL_NEON)
constexpr int kScoreRows = 10;
#else
constexpr int kScoreRows = 6;
#endif
constexpr int64_t kQuad = 4;
constexpr int64_t kLaneBytes = kKvBytePanel * 4;  // of a panel's tokens, a lane each

// --- scores -------------------------------------------------------------------------------------

// Eight terms of kLanes keys, as pairs.
struct KeyPairs {
  PairVec pairs[kKeyTerms / 2];
};

RL_INLINE PairVec pairs_at(IntVec lanes) { return reinterpret_cast<PairVec>(lanes); }

RL_INLINE KeyPairs load_key_pairs(const uint8_t* p) {
  const PairVec a = pairs_at(load_lanes(p));
  const PairVec b = pairs_at(load_lanes(p + kLaneBytes));
  const PairVec c = pairs_at(load_lanes(p + 2 * kLaneBytes));
  return {{a >> 4, b >> 4, c >> 4, ((c << 12) >> 4) | ((b << 4) & 0xf0) | (a & 0xf)}};
}

// H rows from `row` on; V vectors of keys at a time.
template <int H, int V>
void score_rows(const CachedTile& t, int64_t row, const int16_t* queries, float* scores) {
  const KvPageShape& shape = *t.shape;
  const int64_t panel_bytes = kKvBytePanel * shape.key_width * 3 / 2;
  for (int64_t j = t.first; j < t.keys; j += V * kLanes) {
    const int64_t page = j / kKvTokens;
    const int64_t at = j % kKvTokens;
    const int64_t lane = at % kKvBytePanel * 4;
    const uint8_t* keys = t.heads[page] + at / kKvBytePanel * panel_bytes + lane;
    const auto* ahead = reinterpret_cast<const char*>(t.ahead[page]) + (keys - t.heads[page]);
    const int16_t* q = queries + 2 * row;
    PairSums sums[H][V];
    for (int64_t w = shape.key_width; w > 0; w -= kKeyTerms) {
      KeyPairs some[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        some[v] = load_key_pairs(keys + v * panel_bytes);
        if (lane == 0 && row == 0) {
          __builtin_prefetch(ahead + v * panel_bytes, 0, 2);
          __builtin_prefetch(ahead + v * panel_bytes + kLaneBytes, 0, 2);
        }
      }
#pragma GCC unroll 4
      for (int64_t pair = 0; pair < kKeyTerms / 2; ++pair) {
#pragma GCC unroll 14
        for (int64_t i = 0; i < H; ++i) {
          const PairVec terms = pairs_at(all_lanes(bytes_at(q + 2 * i)));
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) add_pairs(sums[i][v], some[v].pairs[pair], terms);
        }
        q += 2 * t.query_stride;
      }
      keys += 3 * kLaneBytes;
      ahead += 3 * kLaneBytes;
    }
    const auto* key_scales =
        reinterpret_cast<const uint16_t*>(t.heads[page] + shape.key_scales) + at;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vec own = load_weights(key_scales + v * kLanes);
#pragma GCC unroll 14
      for (int i = 0; i < H; ++i) {
        store(scores + (row + i) * kScoreStride + j + v * kLanes,
              to_floats(total(sums[i][v])) * t.scales[row + i] * own);
      }
    }
  }
}

// --- values -------------------------------------------------------------------------------------

// Columns from `column` on, V vectors of them.
template <int H, int V>
void add_columns(const CachedTile& t, SplitRow weights, int64_t row, int64_t column, float* out,
                 int64_t out_stride) {
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
        const int64_t from = (row + i) * kKeyBlock + j + at;
        const RowQuad highs = quad_of(bytes_at(weights.high + from));
        const RowQuad lows = quad_of(bytes_at(weights.low + from));
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
void add_rows(const CachedTile& t, SplitRow weights, int64_t row, float* out, int64_t out_stride) {
  constexpr int V = 4 * H + 2 > kSums ? 1 : 2;
  int64_t column = 0;
  for (; column + V * kLanes <= t.shape->value_width; column += V * kLanes) {
    add_columns<H, V>(t, weights, row, column, out, out_stride);
  }
  for (; column < t.shape->value_width; column += kLanes) {
    add_columns<H, 1>(t, weights, row, column, out, out_stride);
  }
}

// --- tiles --------------------------------------------------------------------------------------

using ScoreFn = void (*)(const CachedTile&, int64_t, const int16_t*, float*);
using AddFn = void (*)(const CachedTile&, SplitRow, int64_t, float*, int64_t);

// The vectors of keys for H rows: several for few rows, whose sums would wait for each other.
constexpr int vectors_of(int rows) noexcept {
  if (kLanes < kKvBytePanel || rows > 7) return 1;
  return rows > 2 ? 2 : 4;
}

template <int H>
constexpr ScoreFn score_or_null() noexcept {
  if constexpr (H <= kScoreRows) {
    return score_rows<H, vectors_of(H)>;
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
constexpr ScoreFn kScore[] = {score_or_null<1>(),  score_or_null<2>(),  score_or_null<3>(),
                              score_or_null<4>(),  score_or_null<5>(),  score_or_null<6>(),
                              score_or_null<7>(),  score_or_null<8>(),  score_or_null<9>(),
                              score_or_null<10>(), score_or_null<11>(), score_or_null<12>(),
                              score_or_null<13>(), score_or_null<14>()};
constexpr AddFn kAdd[] = {add_or_null<1>(), add_or_null<2>(), add_or_null<3>(), add_or_null<4>(),
                          add_or_null<5>(), add_or_null<6>(), add_or_null<7>()};

void score(const CachedTile& t, const int16_t* queries, float* scores) {
  for (int64_t row = 0; row < t.rows; row += kScoreRows) {
    const int64_t left = t.rows - row < kScoreRows ? t.rows - row : kScoreRows;
    kScore[left - 1](t, row, queries, scores);
  }
}

void add_values(const CachedTile& t, SplitRow weights, float* out, int64_t out_stride) {
  for (int64_t row = 0; row < t.rows; row += kRows) {
    const int64_t left = t.rows - row < kRows ? t.rows - row : kRows;
    kAdd[left - 1](t, weights, row, out, out_stride);
  }
}

}  // namespace

const CachedDotLoops cached_dot_loops = {score, add_values};

}  // namespace rushlight::engine::RL_ISA
