#include "rushlight/engine/loops/products/cached.h"
#include "rushlight/engine/loops/vectors/dot.h"
#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/pairs.h"

namespace rushlight::engine::RL_ISA {
namespace {

// The most rows of a tile, and the most sums that stay in registers.
#if defined(__AVX512F__)
constexpr int kRows = 14;
constexpr int kSums = 28;
#elif defined(RL_NEON)
constexpr int kRows = 10;
constexpr int kSums = 12;  // in two registers each
#else
constexpr int kRows = 6;
constexpr int kSums = 12;
#endif
constexpr int64_t kPairs = kKeyTerms / 2;
constexpr int64_t kLaneBytes = kKvBytePanel * 4;  // of a panel's tokens, a lane each

RL_INLINE PairVec pairs_at(IntVec lanes) { return reinterpret_cast<PairVec>(lanes); }
RL_INLINE void store_pairs(int16_t* p, PairVec pairs) {
  *reinterpret_cast<VectorOf<int16_t>::Memory*>(p) = pairs;
}

// --- scores -------------------------------------------------------------------------------------

// Eight terms of kLanes keys, as pairs: of a page, and of wide keys.
struct PackedKeys {
  static constexpr int64_t kTermBytes = 3 * kLaneBytes;
  PairVec pairs[kPairs];

  RL_INLINE void load(const uint8_t* p) {
    const PairVec a = pairs_at(load_lanes(p));
    const PairVec b = pairs_at(load_lanes(p + kLaneBytes));
    const PairVec c = pairs_at(load_lanes(p + 2 * kLaneBytes));
    pairs[0] = a >> 4;
    pairs[1] = b >> 4;
    pairs[2] = c >> 4;
    pairs[3] = ((c << 12) >> 4) | ((b << 4) & 0xf0) | (a & 0xf);
  }
  RL_INLINE PairVec pair(int64_t i) const { return pairs[i]; }
  static const uint8_t* page(const CachedTile& t, int64_t page) { return t.heads[page]; }
};

struct WideKeys {
  static constexpr int64_t kTermBytes = kPairs * kLaneBytes;
  const uint8_t* pairs;

  RL_INLINE void load(const uint8_t* p) { pairs = p; }
  RL_INLINE PairVec pair(int64_t i) const { return pairs_at(load_lanes(pairs + i * kLaneBytes)); }
  static const uint8_t* page(const CachedTile& t, int64_t page) {
    return reinterpret_cast<const uint8_t*>(t.wide_keys + page * kKvTokens * t.shape->key_width);
  }
};

// Adds eight terms of H rows and V vectors of keys, which are `next` bytes apart.
template <class Keys, int H, int V>
RL_INLINE void add_terms(const uint8_t* keys, int64_t next, const int16_t* queries, int64_t stride,
                         PairSums (&sums)[H][V]) {
  Keys some[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) some[v].load(keys + v * next);
#pragma GCC unroll 4
  for (int64_t pair = 0; pair < kPairs; ++pair) {
    PairVec pairs[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) pairs[v] = some[v].pair(pair);
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) {
      const PairVec terms = pairs_at(all_lanes(bytes_at(queries + int64_t{2} * i)));
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) add_pairs(sums[i][v], pairs[v], terms);
    }
    queries += 2 * stride;
  }
}

// H rows from `row` on; V vectors of keys at a time.
template <class Keys, int H, int V>
void score_rows(const CachedTile& t, int64_t row, const int16_t* queries, float* scores) {
  const KvPageShape& shape = *t.shape;
  const int64_t panel_bytes = Keys::kTermBytes * (shape.key_width / kKeyTerms);
  // From one vector of keys to the next: beside it in a panel, or in the next panel.
  const int64_t next = kLanes < kKvBytePanel ? kLanes * 4 : panel_bytes;
  const int64_t shares = kKeyBlock / (V * kLanes) * (shape.key_width / kKeyTerms);
  AheadShares ahead = shares_of(row == 0 ? t.ahead : PagesAhead{}, shares);
  for (int64_t j = t.first; j < t.keys; j += V * kLanes) {
    const int64_t page = j / kKvTokens;
    const int64_t at = j % kKvTokens;
    const int64_t lane = at % kKvBytePanel * 4;
    const int64_t from = at / kKvBytePanel * panel_bytes + lane;
    const uint8_t* keys = Keys::page(t, page) + from;
    const int16_t* q = queries + 2 * row;
    PairSums sums[H][V];
    for (int64_t w = shape.key_width; w > 0; w -= kKeyTerms) {
      fetch(ahead);
      add_terms<Keys>(keys, next, q, t.query_stride, sums);
      q += 2 * kPairs * t.query_stride;
      keys += Keys::kTermBytes;
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

void widen_keys(const uint8_t* head, const KvPageShape& shape, int16_t* to) {
  const int64_t terms = kKvTokens / kKvBytePanel * shape.key_width / kKeyTerms;
  for (int64_t term = 0; term < terms; ++term, head += PackedKeys::kTermBytes) {
    for (int64_t lane = 0; lane < kKvBytePanel; lane += kLanes) {
      PackedKeys keys;
      keys.load(head + 4 * lane);
#pragma GCC unroll 4
      for (int64_t pair = 0; pair < kPairs; ++pair) {
        store_pairs(to + (pair * kKvBytePanel + lane) * 2, keys.pair(pair));
      }
    }
    to += kPairs * kKvBytePanel * 2;
  }
}

// --- values -------------------------------------------------------------------------------------

// kLanes columns of four tokens' values, as pairs of tokens: of a page, and of wide values.
struct PackedValues {
  static constexpr int64_t kColumn = kKvQuad;  // bytes of a quad in each column
  static RL_INLINE SplitQuads load(const uint8_t* p, int64_t) { return split_quads(load_lanes(p)); }
  static const uint8_t* page(const CachedTile& t, int64_t page) {
    return t.heads[page] + t.shape->values;
  }
};

struct WideValues {
  static constexpr int64_t kColumn = 2 * kKvQuad;
  static RL_INLINE SplitQuads load(const uint8_t* p, int64_t columns) {
    return {pairs_at(load_lanes(p)), pairs_at(load_lanes(p + columns * kKvQuad))};
  }
  static const uint8_t* page(const CachedTile& t, int64_t page) {
    return reinterpret_cast<const uint8_t*>(t.wide_values +
                                            page * kKvTokens * t.shape->value_width);
  }
};

// Adds four tokens' values, times the weights of H rows.
template <int H, int V>
RL_INLINE void add_quads(const SplitQuads (&quads)[V], const int16_t* weights,
                         PairSums (&sums)[H][V]) {
#pragma GCC unroll 2
  for (int odd = 0; odd < 2; ++odd) {
#pragma GCC unroll 14
    for (int i = 0; i < H; ++i) {
      const PairVec pair =
          pairs_at(all_lanes(bytes_at(weights + i * kKeyBlock + int64_t{2} * odd)));
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        add_pairs(sums[i][v], odd != 0 ? quads[v].odd : quads[v].even, pair);
      }
    }
  }
}

// Columns from `column` on, V vectors of them.
template <class Values, int H, int V>
void add_columns(const CachedTile& t, const int16_t* weights, int64_t row, int64_t column,
                 float* out, int64_t out_stride, AheadShares& ahead) {
  const KvPageShape& shape = *t.shape;
  PairSums sums[H][V];
  for (int64_t j = t.first; j < t.keys; j += kKvTokens) {
    const int64_t page = j / kKvTokens;
    const uint8_t* values = Values::page(t, page) + column * kKvQuad;
    const int64_t left = t.keys - j < kKvTokens ? t.keys - j : kKvTokens;
    const int16_t* from = weights + row * kKeyBlock + j;
    for (int64_t at = 0; at < left; at += kKvQuad) {
      SplitQuads quads[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        quads[v] = Values::load(values + v * kLanes * kKvQuad, shape.value_width);
      }
      fetch(ahead);
      add_quads(quads, from, sums);
      from += kKvQuad;
      values += shape.value_width * Values::kColumn;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < H; ++i) {
    float* const to = out + (row + i) * out_stride + column;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const Vec number = to_floats(total(sums[i][v]));
      store(to + v * kLanes, load(to + v * kLanes) + number * t.scales[row + i]);
    }
  }
}

template <class Values, int H, int V>
void add_rows(const CachedTile& t, const int16_t* weights, int64_t row, float* out,
              int64_t out_stride) {
  const int64_t vectors = t.shape->value_width / kLanes;
  const int64_t shares = kKeyBlock / kKvQuad * (vectors / V + vectors % V);
  AheadShares ahead = shares_of(row == 0 ? t.ahead : PagesAhead{}, shares);
  int64_t column = 0;
  for (; column + V * kLanes <= t.shape->value_width; column += V * kLanes) {
    add_columns<Values, H, V>(t, weights, row, column, out, out_stride, ahead);
  }
  for (; column < t.shape->value_width; column += kLanes) {
    add_columns<Values, H, 1>(t, weights, row, column, out, out_stride, ahead);
  }
}

void widen_values(const uint8_t* head, const KvPageShape& shape, int16_t* to) {
  const uint8_t* from = head + shape.values;
  for (int64_t quad = 0; quad < kKvTokens / kKvQuad; ++quad) {
    for (int64_t w = 0; w < shape.value_width; w += kLanes, from += kLanes * kKvQuad) {
      const SplitQuads pairs = split_quads(load_lanes(from));
      store_pairs(to + 2 * w, pairs.even);
      store_pairs(to + 2 * (shape.value_width + w), pairs.odd);
    }
    to += kKvQuad * shape.value_width;
  }
}

// --- tiles --------------------------------------------------------------------------------------

using ScoreFn = void (*)(const CachedTile&, int64_t, const int16_t*, float*);
using AddFn = void (*)(const CachedTile&, const int16_t*, int64_t, float*, int64_t);

// The vectors of keys or values for so many rows. What a page has is unpacked in registers; few
// rows take more of it at once, since their sums would wait for each other.
constexpr bool kIsWhole = kLanes == kKvBytePanel;
constexpr int wide_vectors(int rows) noexcept { return 2 * rows > kSums ? 1 : 2; }
constexpr int key_vectors(int rows) noexcept {
  return !kIsWhole || rows > 7 ? 1 : rows > 3 ? 2 : 4;
}
constexpr int value_vectors(int rows) noexcept {
  return kIsWhole ? (rows > 7 ? 1 : rows > 4 ? 2 : 4) : (rows > 3 ? 1 : 2);
}

struct TileFns {
  ScoreFn score[2];  // from pages, and wide
  AddFn add[2];
};
template <int H>
constexpr TileFns tile_fns() noexcept {
  if constexpr (H <= kRows) {
    return {
        {score_rows<PackedKeys, H, key_vectors(H)>, score_rows<WideKeys, H, wide_vectors(H)>},
        {add_rows<PackedValues, H, value_vectors(H)>, add_rows<WideValues, H, wide_vectors(H)>}};
  } else {
    return {};
  }
}
constexpr TileFns kTiles[] = {tile_fns<1>(),  tile_fns<2>(),  tile_fns<3>(),  tile_fns<4>(),
                              tile_fns<5>(),  tile_fns<6>(),  tile_fns<7>(),  tile_fns<8>(),
                              tile_fns<9>(),  tile_fns<10>(), tile_fns<11>(), tile_fns<12>(),
                              tile_fns<13>(), tile_fns<14>()};

void score(const CachedTile& t, const int16_t* queries, float* scores) {
  for (int64_t row = 0; row < t.rows; row += kRows) {
    const int64_t left = t.rows - row < kRows ? t.rows - row : kRows;
    kTiles[left - 1].score[t.wide_keys != nullptr](t, row, queries, scores);
  }
}

void add_values(const CachedTile& t, const int16_t* weights, float* out, int64_t out_stride) {
  for (int64_t row = 0; row < t.rows; row += kRows) {
    const int64_t left = t.rows - row < kRows ? t.rows - row : kRows;
    kTiles[left - 1].add[t.wide_values != nullptr](t, weights, row, out, out_stride);
  }
}

}  // namespace

const CachedDotLoops cached_dot_loops = {widen_keys, widen_values, score, add_values};

}  // namespace rushlight::engine::RL_ISA
