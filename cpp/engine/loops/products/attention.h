// Inner loops of attention: register tiles of both products, packing, and the online softmax
// between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/engine/loops/products/pages_ahead.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// How many keys a block has.
constexpr int64_t kKeyBlock = 256;
// The stride between rows of scores and of copied queries. It is a constant, so that a tile
// addresses all rows from one register, and an odd number of cache lines, so that rows fall into
// different sets of the cache.
constexpr int64_t kScoreStride = kKeyBlock + 16;
// The greatest height of tiles and width of panels (2 vectors) of all instruction sets.
constexpr int64_t kMostTileRows = 14;
constexpr int64_t kMostPanel = 32;

// One tile of rows against one block of keys.
struct ScoreBlock {
  float* scores;  // a row each kScoreStride; become e^(score - max), zeros where a key is not seen
  int64_t rows, keys;
  // Row i sees the keys from hidden + p to seen + p - 1, where p = (phase + i) / position_rows.
  int64_t seen;
  int64_t hidden;
  int64_t position_rows, phase;
  float softcap;  // scores become softcap * tanh(score / softcap); 0: they stay
  // Added to scores; element (i, j) at i * mask_row + j * mask_column. May be nullptr.
  const float* mask;
  int64_t mask_row, mask_column;
  // If not nullptr, of each key: what a score has become is multiplied by it after it was added to
  // the row's sum. `most` is set to the greatest product of each row, NaN if one is.
  const float* factors;
  float* most;
  PagesAhead ahead;  // fetched by soften()
  bool first;        // this is a row's first block: max, sum and out are not set yet
  float *max, *sum;  // of each row
  float* out;        // the sums so far, `width` floats for each row
  int64_t out_stride, width;
};

// Scores are divided by ln 2, so that softmax uses powers of 2.
struct AttentionLoops {
  int64_t tile_rows;
  int64_t panel;
  // Panels of `panel` keys: element (width w, key j) at w * panel + j % panel in panel j / panel.
  void (*pack_keys)(const float* k, int64_t stride, int64_t keys, int64_t width, float* panels);
  // Panels of `panel` columns: element (key j, w) at j * panel + w % panel in panel w / panel.
  void (*pack_values)(const float* v, int64_t stride, int64_t keys, int64_t width, float* panels);
  // out (a row each kScoreStride) = x * factor
  void (*scale)(const float* x, int64_t stride, int64_t rows, int64_t n, float factor, float* out);
  // c = a b, or c + a b: a has a row each kScoreStride, b a row each b_stride, and in c whole
  // vectors are written for `columns` <= panel columns.
  void (*multiply)(const float* a, int64_t rows, const float* b, int64_t b_stride, int64_t depth,
                   int64_t columns, float* c, int64_t c_stride, bool add);
  // scores[j] = q . k_j, for one query and keys that are not packed.
  void (*dot)(const float* q, const float* k, int64_t stride, int64_t keys, int64_t width,
              float* scores);
  void (*soften)(const ScoreBlock& block);
  // to = out / sum of `rows` rows; 0 where the sum is 0.
  void (*normalize)(const ScoreBlock& block, float* to, int64_t stride);
};

RL_LOOPS(AttentionLoops, attention_loops)

}  // namespace rushlight::engine
