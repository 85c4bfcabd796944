// Computes units of attention over pages: block by block, as far as the rows of a tile see them.
#include "rushlight/engine/kernels/products/cached_units.h"

namespace rushlight::engine::cached {
namespace {

constexpr int64_t kLine = 64;    // bytes that memory gives at once
constexpr int64_t kFetches = 4;  // calls that fetch what is left of the next block

}  // namespace

// Up to kBlockPages pages, as far as some row of the unit sees them.
struct Worker::Block {
  int64_t first, end;  // positions
  int64_t unseen;      // keys in pages before the first one that is seen, which may be gone
  const uint8_t* heads[kBlockPages];
  const uint8_t* ahead[kBlockPages];
  bool is_wide;  // its pages are in the scratch memory: float16 as float32, int8 as int16
  bool fetches;  // what is ahead: the first tile does
};

void Worker::run(int64_t number) {
  const Unit unit = run_.unit_at(number);
  float* const part = scratch_ + run_.layout.states;
  float* const total = part + run_.layout.unit_state;
  const int64_t first = run_.first_part(unit);
  const int64_t end = run_.end_part(unit);
  if (end - first > 1) run_.clear(unit, total);
  if (run_.is_int8()) round_queries(unit);
  for (int64_t i = first; i < end; ++i) {
    run_blocks(unit, i, part);
    if (end - first > 1) run_.join(unit, total, part);
  }
  run_.write(unit, end - first > 1 ? total : part);
}

void Worker::run_part(const Unit& unit, int64_t part, float* states) {
  if (run_.is_int8()) round_queries(unit);
  run_blocks(unit, part, states);
}

void Worker::run_blocks(const Unit& unit, int64_t part, float* states) {
  run_.clear(unit, states);
  const int64_t last = run_.position_of(unit, unit.first_row + unit.rows - 1);
  const int64_t seen = run_.first_seen(unit, unit.first_row) / kKeyBlock * kKeyBlock;
  int64_t first = part * kPartTokens;
  if (first < seen) first = seen;
  for (; first < (part + 1) * kPartTokens && first <= last; first += kKeyBlock) {
    for (int64_t head = 0; head < unit.heads; ++head) run_block(unit, head, first, states);
  }
}

void Worker::round_queries(const Unit& unit) {
  const float* queries[kMostRows];
  for (int64_t h = 0; h < unit.heads; ++h) {
    const Unit one = unit.head(h);
    for (int64_t i = 0; i < one.rows; ++i) {
      queries[one.state + i] = run_.query(one, one.first_row + i);
    }
  }
  run_.cached.round_queries(queries, unit.state_rows, run_.a.width, run_.shape.key_width,
                            run_.a.scale * kLog2E, reinterpret_cast<int16_t*>(scratch_),
                            unit.state_rows, scratch_ + run_.layout.scales);
}

void Worker::run_block(const Unit& unit, int64_t head, int64_t first, float* states) {
  const int64_t end = run_.position_of(unit, unit.first_row + unit.rows - 1) + 1;
  const Unit one = unit.head(head);
  Block block = {};
  open_block(unit, head, first, least(first + kKeyBlock, end), &block);
  const int64_t tiles = run_.tiles_of(one);
  if (run_.cache.layout.dtype != DType::Float32 && tiles > 1) widen(&block);
  for (int64_t i = 0; run_.is_int8() && first + i * kKvTokens < block.end; ++i) {
    const uint8_t* const scales = block.heads[i] + run_.shape.value_scales;
    run_.cached.widen_scales(reinterpret_cast<const uint16_t*>(scales),
                             scratch_ + run_.layout.factors + i * kKvTokens, kKvTokens);
  }
  for (int64_t tile = 0; tile < tiles; ++tile) {
    block.fetches = tile == 0;
    if (run_.is_int8() && block.is_wide) fetch_all(block, tile, tiles);
    run_tile(one, block, tile, states);
  }
}

void Worker::open_block(const Unit& unit, int64_t head, int64_t first, int64_t end, Block* block) {
  block->first = first;
  block->end = end;
  const int64_t seen = run_.first_seen(unit, unit.first_row) / kKvTokens * kKvTokens;
  block->unseen = seen > first ? seen - first : 0;
  const int64_t last_page = run_.position_of(unit, unit.first_row + unit.rows - 1) / kKvTokens;
  const int64_t first_page = run_.first_seen(unit, unit.first_row) / kKvTokens;
  // After the last block, a thread may take the heads of keys that follow, in the same pages.
  const auto next_page = [&](int64_t i) {
    const int64_t start = first_page / kBlockPages * kBlockPages + i;
    return start < first_page ? first_page : least(start, last_page);
  };
  const size_t at = static_cast<size_t>(head) * run_.shape.head_bytes;
  const bool is_last = unit.key_head + unit.heads == run_.a.key_heads;
  const size_t after = is_last ? 0 : static_cast<size_t>(unit.heads) * run_.shape.head_bytes;
  for (int64_t i = 0; first + i * kKvTokens < end; ++i) {
    const int64_t page = first / kKvTokens + i;
    block->heads[i] = run_.head_at(unit, page < first_page ? first_page : page) + at;
    if (head + 1 < unit.heads) {
      block->ahead[i] = block->heads[i] + run_.shape.head_bytes;
    } else if (page + kBlockPages <= last_page) {
      block->ahead[i] = run_.head_at(unit, page + kBlockPages);
    } else {
      block->ahead[i] = run_.head_at(unit, next_page(i)) + after;
    }
  }
}

// Widens the pages of a block that some row sees.
void Worker::widen(Block* block) const {
  const KvPageShape& shape = run_.shape;
  for (int64_t page = block->unseen / kKvTokens; block->first + page * kKvTokens < block->end;
       ++page) {
    const uint8_t* const head = block->heads[page];
    float* const keys = scratch_ + run_.layout.keys;
    float* const values = scratch_ + run_.layout.values;
    const int64_t key_at = page * kKvTokens * shape.key_width;
    const int64_t value_at = page * kKvTokens * shape.value_width;
    if (run_.is_int8()) {
      run_.dots.widen_keys(head, shape, reinterpret_cast<int16_t*>(keys) + key_at);
      run_.dots.widen_values(head, shape, reinterpret_cast<int16_t*>(values) + value_at);
    } else {
      const auto halves = [&](size_t at) { return reinterpret_cast<const uint16_t*>(head + at); };
      run_.cached.widen(halves(0), keys + key_at, kKvTokens * shape.key_width);
      run_.cached.widen(halves(shape.values), values + value_at, kKvTokens * shape.value_width);
    }
  }
  block->is_wide = true;
}

// A page's keys or values as float32.
const float* Worker::floats_of(const Block& block, int64_t page, bool keys) const {
  const uint8_t* const from = block.heads[page] + (keys ? 0 : run_.shape.values);
  if (run_.cache.layout.dtype == DType::Float32) return reinterpret_cast<const float*>(from);
  const int64_t size = kKvTokens * (keys ? run_.a.width : run_.shape.value_width);
  float* const to = scratch_ + (keys ? run_.layout.keys : run_.layout.values);
  if (block.is_wide) return to + page * size;
  // A block with one tile has a page at a time, which stays in the first-level cache.
  run_.cached.widen(reinterpret_cast<const uint16_t*>(from), to, size);
  return to;
}

void Worker::run_tile(const Unit& unit, const Block& block, int64_t tile, float* states) {
  const int64_t row = run_.tile_row(unit, tile);
  const int64_t end = run_.tile_row(unit, tile + 1);
  ScoreBlock scores = {};
  scores.scores = scratch_ + run_.layout.scores;
  scores.rows = end - row;
  scores.keys = least(block.end, run_.position_of(unit, end - 1) + 1) - block.first;
  // Rows of a tile see keys from first_seen() on; the last row sees the fewest of them.
  if (scores.keys <= 0 || run_.first_seen(unit, row) >= block.end) return;
  scores.seen = run_.position_of(unit, row) + 1 - block.first;
  scores.hidden = run_.a.window > 0 ? scores.seen - run_.a.window : -kMostTileRows;
  scores.position_rows = run_.group;
  scores.phase = row % run_.group;
  scores.softcap = run_.a.softcap * kLog2E;
  const State state = run_.state_at(states, unit.state + row - unit.first_row);
  scores.max = state.max;
  scores.sum = state.sum;
  scores.out = state.out;
  scores.out_stride = run_.shape.value_width;
  scores.width = run_.shape.value_width;
  if (run_.is_int8()) {
    scores.factors = scratch_ + run_.layout.factors;
    scores.most = scratch_ + run_.layout.most;
  }
  score(unit, block, row, scores);
  run_.loops.soften(scores);
  add_values(block, scores);
}

// Fetches the share that some tokens of a page have in `size` bytes from `start` on.
void Worker::fetch(const uint8_t* start, int64_t token, int64_t tokens, size_t size) {
  const size_t end = size * static_cast<size_t>(least(token + tokens, kKvTokens)) / kKvTokens;
  for (size_t at = size * static_cast<size_t>(token) / kKvTokens; at < end;
       at += static_cast<size_t>(kLine)) {
    __builtin_prefetch(start + at, 0, 2);
  }
}

// Fetches a part of what score() and add_values() of int8 do not fetch: every third line of keys,
// and the scales. Neither of them runs, whose own loads would wait for it.
void Worker::fetch_rest(const Block& block, int64_t part, int64_t parts) const {
  constexpr int64_t kLines = 3;
  const KvPageShape& shape = run_.shape;
  const int64_t thirds = static_cast<int64_t>(shape.values) / (kLines * kLine);
  for (const uint8_t* head : block.ahead) {
    if (head == nullptr) continue;
    for (int64_t i = part * thirds / parts; i < (part + 1) * thirds / parts; ++i) {
      __builtin_prefetch(head + (kLines * i + kLines - 1) * kLine, 0, 2);
    }
    if (part == 0)
      fetch(head + shape.key_scales, 0, kKvTokens, shape.head_bytes - shape.key_scales);
  }
}

// Fetches a part of all that the next block has.
void Worker::fetch_all(const Block& block, int64_t part, int64_t parts) const {
  const int64_t lines = static_cast<int64_t>(run_.shape.head_bytes) / kLine;
  for (const uint8_t* head : block.ahead) {
    if (head == nullptr) continue;
    for (int64_t i = part * lines / parts; i < (part + 1) * lines / parts; ++i) {
      __builtin_prefetch(head + i * kLine, 0, 2);
    }
  }
}

CachedTile Worker::tile_of(const Block& block, const ScoreBlock& scores) const {
  CachedTile tile = {};
  tile.rows = scores.rows;
  tile.first = block.unseen;
  tile.keys = scores.keys;
  for (int64_t i = 0; i < kBlockPages; ++i) {
    tile.heads[i] = block.heads[i];
    tile.ahead[i] = block.fetches ? block.ahead[i] : block.heads[i];
  }
  if (block.is_wide) {
    tile.wide_keys = reinterpret_cast<const int16_t*>(scratch_ + run_.layout.keys);
    tile.wide_values = reinterpret_cast<const int16_t*>(scratch_ + run_.layout.values);
  }
  tile.shape = &run_.shape;
  return tile;
}

void Worker::score(const Unit& unit, const Block& block, int64_t row, const ScoreBlock& scores) {
  if (run_.is_int8()) {
    const int64_t first = unit.state + row - unit.first_row;
    CachedTile t = tile_of(block, scores);
    t.query_stride = unit.state_rows;
    t.scales = scratch_ + run_.layout.scales + first;
    run_.dots.score(t, reinterpret_cast<const int16_t*>(scratch_) + 2 * first, scores.scores);
    return;
  }
  const AttentionLoops& loops = run_.loops;
  float* const queries = scratch_;
  for (int64_t w = 0; w < run_.a.width; w += kKeyBlock) {
    const int64_t depth = least(kKeyBlock, run_.a.width - w);
    for (int64_t i = 0; i < scores.rows; ++i) {
      loops.scale(run_.query(unit, row + i) + w, 0, 1, depth, run_.a.scale * kLog2E,
                  queries + i * kScoreStride);
    }
    const float* keys = nullptr;
    for (int64_t j = block.unseen; j < scores.keys; j += loops.panel) {
      const int64_t at = j % kKvTokens;
      if (at == 0) keys = floats_of(block, j / kKvTokens, true);
      if (block.fetches && w == 0) {
        fetch(block.ahead[j / kKvTokens], at, loops.panel, run_.shape.values);
      }
      const float* const panel =
          keys + at / kKvPanel * kKvPanel * run_.a.width + at % kKvPanel + w * kKvPanel;
      loops.multiply(queries, scores.rows, panel, kKvPanel, depth, scores.keys - j,
                     scores.scores + j, kScoreStride, w > 0);
    }
  }
}

void Worker::add_values(const Block& block, const ScoreBlock& scores) {
  const KvPageShape& shape = run_.shape;
  if (run_.is_int8()) {
    CachedTile t = tile_of(block, scores);
    auto* const weights = reinterpret_cast<int16_t*>(scratch_ + run_.layout.weights);
    float* const scales = scratch_ + run_.layout.weight_scales;
    const int64_t fetches = block.fetches && !block.is_wide ? least(scores.rows, kFetches) : 0;
    for (int64_t i = 0; i < scores.rows; ++i) {
      if (i < fetches) fetch_rest(block, i, fetches);
      scales[i] = run_.cached.round_weights(scores.scores + i * kScoreStride, scores.most[i],
                                            scores.keys, weights + i * kKeyBlock);
    }
    t.scales = scales;
    run_.dots.add_values(t, weights, scores.out, scores.out_stride);
    return;
  }
  const AttentionLoops& loops = run_.loops;
  for (int64_t j = block.unseen; j < scores.keys; j += kKvTokens) {
    const int64_t depth = least(kKvTokens, scores.keys - j);
    const float* const values = floats_of(block, j / kKvTokens, false);
    const uint8_t* const ahead = block.ahead[j / kKvTokens] + shape.values;
    for (int64_t w = 0; w < shape.value_width; w += loops.panel) {
      if (block.fetches) {
        fetch(ahead, w * kKvTokens / shape.value_width,
              loops.panel * kKvTokens / shape.value_width + 1, shape.head_bytes - shape.values);
      }
      loops.multiply(scores.scores + j, scores.rows, values + w, shape.value_width, depth,
                     shape.value_width - w, scores.out + w, scores.out_stride, true);
    }
  }
}

}  // namespace rushlight::engine::cached
