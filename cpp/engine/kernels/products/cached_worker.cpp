// Computes units of attention over pages: block by block, as far as the rows of a tile see them.
#include "rushlight/engine/kernels/products/cached_units.h"

namespace rushlight::engine::cached {
namespace {

// Of what is read next, the parts of five that are fetched while scores are computed, while they
// become weights, and while values are added: about what these take of the time.
constexpr int64_t kScored = 2;
constexpr int64_t kSoftened = 3;
constexpr int64_t kAheadParts = 5;

}  // namespace

// Up to kBlockPages pages, as far as some row of the unit sees them.
struct Worker::Block {
  int64_t first, end;  // positions
  int64_t unseen;      // keys in pages before the first one that is seen, which may be gone
  const uint8_t* heads[kBlockPages];
  PagesAhead ahead;  // the next block
  bool is_wide;      // its pages are in the scratch memory: float16 as float32, int8 as int16
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
    run_tile(one, block, tile, states);
  }
}

void Worker::open_block(const Unit& unit, int64_t head, int64_t first, int64_t end, Block* block) {
  block->first = first;
  block->end = end;
  const int64_t seen = run_.first_seen(unit, unit.first_row) / kKvTokens * kKvTokens;
  block->unseen = seen > first ? seen - first : 0;
  const int64_t first_page = run_.first_seen(unit, unit.first_row) / kKvTokens;
  const size_t at = static_cast<size_t>(head) * run_.shape.head_bytes;
  for (int64_t i = 0; first + i * kKvTokens < end; ++i) {
    const int64_t page = first / kKvTokens + i;
    block->heads[i] = run_.head_at(unit, page < first_page ? first_page : page) + at;
  }
  block->ahead = ahead_of(unit, head, first);
}

// What follows a block: its pages for the next head; the next pages; or the first pages for the
// heads that follow, which this thread may take. Nothing after the last head.
PagesAhead Worker::ahead_of(const Unit& unit, int64_t head, int64_t first) const {
  const int64_t last_page = run_.position_of(unit, unit.first_row + unit.rows - 1) / kKvTokens;
  const int64_t first_page = run_.first_seen(unit, unit.first_row) / kKvTokens;
  int64_t page = first / kKvTokens;
  int64_t next_head = head + 1;
  if (next_head == unit.heads && page + kBlockPages <= last_page) {
    page += kBlockPages;
    next_head = 0;
  } else if (next_head == unit.heads) {
    page = first_page / kBlockPages * kBlockPages;
  }
  PagesAhead ahead = {};
  if (unit.key_head + next_head == run_.a.key_heads) return ahead;
  for (int64_t i = 0; i < kBlockPages; ++i) {
    const int64_t seen = page + i < first_page ? first_page : least(page + i, last_page);
    ahead.pages[i] =
        run_.head_at(unit, seen) + static_cast<size_t>(next_head) * run_.shape.head_bytes;
  }
  ahead.end = run_.shape.head_bytes;
  return ahead;
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
  const PagesAhead ahead = block.ahead.share(tile, tile + 1, run_.tiles_of(unit));
  score(unit, block, row, scores, ahead.share(0, kScored, kAheadParts));
  scores.ahead = ahead.share(kScored, kSoftened, kAheadParts);
  run_.loops.soften(scores);
  add_values(block, scores, ahead.share(kSoftened, kAheadParts, kAheadParts));
}

// Fetches one of `parts` parts of what is ahead before a product of floats. So many lines at once
// arrive sooner page by page.
void Worker::fetch_part(const PagesAhead& ahead, int64_t part, int64_t parts) {
  constexpr size_t kLine = 64;
  const size_t own = ahead.end - ahead.at;
  const size_t all = own * static_cast<size_t>(PagesAhead::kPages);
  const size_t end = all * static_cast<size_t>(part + 1) / static_cast<size_t>(parts);
  for (size_t at = all * static_cast<size_t>(part) / static_cast<size_t>(parts); at < end;
       at += kLine) {
    __builtin_prefetch(ahead.pages[at / own] + ahead.at + at % own);
  }
}

CachedTile Worker::tile_of(const Block& block, const ScoreBlock& scores) const {
  CachedTile tile = {};
  tile.rows = scores.rows;
  tile.first = block.unseen;
  tile.keys = scores.keys;
  for (int64_t i = 0; i < kBlockPages; ++i) tile.heads[i] = block.heads[i];
  if (block.is_wide) {
    tile.wide_keys = reinterpret_cast<const int16_t*>(scratch_ + run_.layout.keys);
    tile.wide_values = reinterpret_cast<const int16_t*>(scratch_ + run_.layout.values);
  }
  tile.shape = &run_.shape;
  return tile;
}

void Worker::score(const Unit& unit, const Block& block, int64_t row, const ScoreBlock& scores,
                   const PagesAhead& ahead) {
  if (run_.is_int8()) {
    const int64_t first = unit.state + row - unit.first_row;
    CachedTile t = tile_of(block, scores);
    t.ahead = ahead;
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
      if (w == 0) fetch_part(ahead, j / loops.panel, kKeyBlock / loops.panel);
      const float* const panel =
          keys + at / kKvPanel * kKvPanel * run_.a.width + at % kKvPanel + w * kKvPanel;
      loops.multiply(queries, scores.rows, panel, kKvPanel, depth, scores.keys - j,
                     scores.scores + j, kScoreStride, w > 0);
    }
  }
}

void Worker::add_values(const Block& block, const ScoreBlock& scores, const PagesAhead& ahead) {
  const KvPageShape& shape = run_.shape;
  if (run_.is_int8()) {
    CachedTile t = tile_of(block, scores);
    auto* const weights = reinterpret_cast<int16_t*>(scratch_ + run_.layout.weights);
    float* const scales = scratch_ + run_.layout.weight_scales;
    for (int64_t i = 0; i < scores.rows; ++i) {
      scales[i] = run_.cached.round_weights(scores.scores + i * kScoreStride, scores.most[i],
                                            scores.keys, weights + i * kKeyBlock);
    }
    t.ahead = ahead;
    t.scales = scales;
    run_.dots.add_values(t, weights, scores.out, scores.out_stride);
    return;
  }
  const AttentionLoops& loops = run_.loops;
  for (int64_t j = block.unseen; j < scores.keys; j += kKvTokens) {
    const int64_t depth = least(kKvTokens, scores.keys - j);
    const float* const values = floats_of(block, j / kKvTokens, false);
    const int64_t parts = quotient_up(shape.value_width, loops.panel);
    for (int64_t w = 0; w < shape.value_width; w += loops.panel) {
      fetch_part(ahead, j / kKvTokens * parts + w / loops.panel, kBlockPages * parts);
      loops.multiply(scores.scores + j, scores.rows, values + w, shape.value_width, depth,
                     shape.value_width - w, scores.out + w, scores.out_stride, true);
    }
  }
}

}  // namespace rushlight::engine::cached
