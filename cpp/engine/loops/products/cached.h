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
static_assert(kBlockPages == PagesAhead::kPages, "a block's pages are fetched in turns");

// The tokens whose values lie together in pages of int8, and the terms of a key that do.
constexpr int64_t kKvQuad = 4;
constexpr int64_t kKeyTerms = 8;

// A key, and place `at` of a page, where its head begins at `head`.
struct KeyPlace {
  const float* key;
  uint8_t* head;
  int64_t at;
};

struct CachedRowLoops {
  void (*store_keys)(const KeyPlace* places, int64_t n, int64_t width, DType dtype,
                     const KvPageShape& shape);
  // Stores the values that neighbouring tokens have in one head, from place `at` of its page on.
  // What the first and the last quad of tokens has beside them is read, and written back.
  void (*store_values)(const float* v, int64_t stride, int64_t tokens, int64_t width, DType dtype,
                       const KvPageShape& shape, uint8_t* head, int64_t at);
  // Rotates queries, and rounds factor * query to integers whose products with keys fit 32 bits
  // (width filled up to `padded`). They are written as pairs [padded / 2][rows], `stride` pairs
  // apart; and the scale of each row.
  void (*round_queries)(const float* const* q, int64_t rows, int64_t width, int64_t padded,
                        float factor, int16_t* to, int64_t stride, float* scales);
  // Rounds the weights of a block (none negative, nor greater than `most`) to integers; of each
  // four, in the order 0, 2, 1, 3. Those from `keys` on, up to a whole four, become 0. Returns the
  // scale.
  float (*round_weights)(const float* weights, float most, int64_t keys, int16_t* to);
  // float32 of n halves, or bfloat16; n is a multiple of 16.
  void (*widen)(const uint16_t* from, float* to, int64_t n);
  void (*widen_scales)(const uint16_t* from, float* to, int64_t n);
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
  PagesAhead ahead;  // fetched by score() and add_values()
  // What widen_keys() and widen_values() have made of the pages, one after the other; or nullptr:
  // the pages themselves are read.
  const int16_t* wide_keys;
  const int16_t* wide_values;
  const KvPageShape* shape;
  int64_t query_stride;  // from one pair of a query to the next; those of rows are neighbours
  const float* scales;   // of each row
};

struct CachedDotLoops {
  // All keys and values of a head's page as int16: [panels of 16 tokens][width / 2][16][2], and
  // [quads of 4 tokens][tokens 0 and 2, 1 and 3][value width, filled up][2].
  void (*widen_keys)(const uint8_t* head, const KvPageShape& shape, int16_t* to);
  void (*widen_values)(const uint8_t* head, const KvPageShape& shape, int16_t* to);
  // scores (a row each kScoreStride) = queries times keys.
  void (*score)(const CachedTile& tile, const int16_t* queries, float* scores);
  // out += weights (a row each kKeyBlock) times values.
  void (*add_values)(const CachedTile& tile, const int16_t* weights, float* out,
                     int64_t out_stride);
};

RL_LOOPS(CachedRowLoops, cached_row_loops)
RL_DOT_LOOPS(CachedDotLoops, cached_dot_loops)

}  // namespace rushlight::engine
