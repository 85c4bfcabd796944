// Inner loops of attention over pages of keys and values (types/kv_page.h): tokens are stored in a
// page, and blocks of up to kBlockPages pages are read from it. Products with float32 pages are
// those of attention.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/loops/products/attention.h"
#include "rushlight/engine/types/kv_page.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

constexpr int64_t kBlockPages = kKeyBlock / kKvTokens;

// The terms of a key that lie together in pages of int8.
constexpr int64_t kKeyTerms = 8;

// A row of 16 bits as two rows of bytes, row = scale * (256 * high + low).
struct SplitRow {
  uint8_t* high;
  uint8_t* low;
};

struct CachedRowLoops {
  // Stores a token's key or value of one head at place `at` of a page, whose head begins at `head`.
  void (*store_key)(const float* k, int64_t width, DType dtype, const KvPageShape& shape,
                    uint8_t* head, int64_t at);
  void (*store_value)(const float* v, int64_t width, DType dtype, const KvPageShape& shape,
                      uint8_t* head, int64_t at);
  // Rotates a query, and rounds factor * query to integers whose products with keys fit 32 bits
  // (width filled up to `padded`). Pairs of them are written `stride` pairs apart. Returns the
  // scale.
  float (*round_query)(const float* q, int64_t width, int64_t padded, float factor, int16_t* to,
                       int64_t stride);
  // Multiplies weights (none negative) of a block by the scales of values, and splits them into
  // unsigned bytes. Keys from `keys` on have weight 0. Returns the scale.
  float (*split_weights)(const float* weights, const uint16_t* const* scales, int64_t keys,
                         SplitRow to);
  // float32 of n halves; n is a multiple of 16.
  void (*widen)(const uint16_t* from, float* to, int64_t n);
  // Joins the state of a part with that of all before it: `max`, `sum` and `width` numbers of out.
  void (*join)(float* max, float* sum, float* out, float part_max, float part_sum,
               const float* part, int64_t width);
};

// One tile of queries against the pages of a block, of int8.
struct CachedTile {
  int64_t rows;
  int64_t first;  // whole pages of keys that no row sees come before it
  int64_t keys;   // of the block that some row sees, at least 1
  const uint8_t* heads[kBlockPages];
  const uint8_t* ahead[kBlockPages];  // what is read next, and fetched; any address is allowed
  const KvPageShape* shape;
  int64_t query_stride;  // from one pair of a query to the next; those of rows are neighbours
  const float* scales;   // of each row
};

struct CachedDotLoops {
  // scores (a row each kScoreStride) = queries times keys.
  void (*score)(const CachedTile& tile, const int16_t* queries, float* scores);
  // out += weights (a row each kKeyBlock) times values.
  void (*add_values)(const CachedTile& tile, SplitRow weights, float* out, int64_t out_stride);
};

RL_LOOPS(CachedRowLoops, cached_row_loops)
RL_DOT_LOOPS(CachedDotLoops, cached_dot_loops)

}  // namespace rushlight::engine
