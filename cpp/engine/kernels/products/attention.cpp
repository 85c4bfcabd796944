// Attention by items: an item is a run of query tiles of one key head. For each block of keys it
// packs keys and values once, into scratch memory that fits into second-level cache, and computes
// scores, softmax and the product with values for each tile, while these are in the first-level
// cache.
#include "rushlight/engine/kernels/products/attention.h"

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/loops/products/attention.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kItemRows = 256;  // rows of queries that share one packing of keys
constexpr int64_t kLeastTiles = 4;  // of an item: packing costs about as much as a tile
constexpr int64_t kManyItems = 8;   // enough for a few threads
constexpr int64_t kFewQueries = 3;  // with at most this many queries, keys are not packed
constexpr int64_t kRowStats = 16;   // room for one number of each row of a tile
constexpr int64_t kUnlimited = int64_t{1} << 60;

int64_t quotient_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

// How the work is divided. It depends on the shapes and the instruction set alone.
struct Plan {
  int64_t tiles;       // of the queries of one head, of nearly equal heights
  int64_t head_tiles;  // of all heads that share a key head
  int64_t item_tiles;
  int64_t key_head_items;
  int64_t items;
  int64_t states;     // of the tiles of an item, kept between blocks of keys
  int64_t tile_rows;  // at most
  bool few;           // few queries: keys are not packed
  bool values_too;    // few queries: nor are values
};

Plan plan_of(const Attention& a, int64_t tile_rows, int64_t lanes) {
  Plan plan = {};
  const int64_t key_heads = a.batch * a.key_heads;
  plan.tiles = quotient_up(a.queries, tile_rows);
  plan.head_tiles = plan.tiles * (a.heads / a.key_heads);
  plan.item_tiles = kItemRows / tile_rows;
  const int64_t share = key_heads * plan.head_tiles / kManyItems;
  if (share < plan.item_tiles) plan.item_tiles = share < kLeastTiles ? kLeastTiles : share;
  plan.key_head_items = quotient_up(plan.head_tiles, plan.item_tiles);
  plan.items = key_heads * plan.key_head_items;
  plan.states = a.keys > kKeyBlock ? least(plan.item_tiles, plan.head_tiles) : 1;
  plan.tile_rows = tile_rows;
  plan.few = a.queries <= kFewQueries && a.width <= kKeyBlock;
  plan.values_too = plan.few && a.value_width % lanes == 0;
  return plan;
}

// Where the parts of one thread's scratch memory begin, in floats.
struct Layout {
  int64_t value_width;  // filled up to whole panels
  int64_t keys, values, queries, scores, states, state, size;
};

Layout layout_of(const Attention& a, const Plan& plan) {
  Layout layout = {};
  const int64_t keys = round_up(least(a.keys, kKeyBlock), kMostPanel);
  layout.value_width = round_up(a.value_width, kMostPanel);
  layout.values = layout.keys + (plan.few ? 0 : keys * round_up(a.width, kMostPanel));
  layout.queries = layout.values + (plan.values_too ? 0 : keys * layout.value_width);
  layout.scores = layout.queries + kMostTileRows * kScoreStride;
  layout.states = layout.scores + kMostTileRows * kScoreStride;
  layout.state = 2 * kRowStats + plan.tile_rows * layout.value_width;
  layout.size = round_up(layout.states + plan.states * layout.state, 16);
  return layout;
}

// One thread's work.
class Worker {
 public:
  Worker(const Attention& attention, const Plan& plan, const Layout& layout, float* scratch)
      : a_(attention), plan_(plan), layout_(layout), loops_(attention_loops()), scratch_(scratch) {}

  void run(int64_t item) {
    const int64_t key_head = item / plan_.key_head_items;
    batch_ = key_head / a_.key_heads;
    key_head_ = key_head % a_.key_heads;
    const int64_t first = item % plan_.key_head_items * plan_.item_tiles;
    const int64_t end = least(first + plan_.item_tiles, plan_.head_tiles);
    for (int64_t key = 0; key < a_.keys; key += kKeyBlock) {
      const int64_t keys = least(kKeyBlock, a_.keys - key);
      if (a_.causal && key >= last_row(first, end)) break;
      const float* const k = at(a_.k, a_.k_strides) + key * a_.k_strides.row;
      const float* const v = at(a_.v, a_.v_strides) + key * a_.v_strides.row;
      if (!plan_.few)
        loops_.pack_keys(k, a_.k_strides.row, keys, a_.width, scratch_ + layout_.keys);
      if (!plan_.values_too) {
        loops_.pack_values(v, a_.v_strides.row, keys, a_.value_width, scratch_ + layout_.values);
      }
      for (int64_t tile = first; tile < end; ++tile) {
        run_tile(tile, plan_.states == 1 ? 0 : tile - first, key, keys);
      }
    }
  }

 private:
  int64_t row_of(int64_t tile) const { return tile * a_.queries / plan_.tiles; }
  // The end of these tiles' queries.
  int64_t last_row(int64_t first, int64_t end) const {
    if ((end - 1) / plan_.tiles != first / plan_.tiles) return a_.queries;
    return row_of((end - 1) % plan_.tiles + 1);
  }
  const float* at(const float* tensor, const HeadStrides& strides) const {
    return tensor + batch_ * strides.batch + key_head_ * strides.head;
  }

  void run_tile(int64_t tile, int64_t state, int64_t key, int64_t keys) {
    const int64_t head = key_head_ * (a_.heads / a_.key_heads) + tile / plan_.tiles;
    const int64_t row = row_of(tile % plan_.tiles);
    ScoreBlock block = {};
    block.rows = row_of(tile % plan_.tiles + 1) - row;
    block.scores = scratch_ + layout_.scores;
    block.keys = a_.causal ? least(keys, row + block.rows - key) : keys;
    block.seen = a_.causal ? row + 1 - key : kUnlimited;
    block.hidden = -kUnlimited;
    block.position_rows = 1;
    block.first = key == 0;
    block.max = scratch_ + layout_.states + state * layout_.state;
    block.sum = block.max + kRowStats;
    block.out = block.sum + kRowStats;
    block.out_stride = layout_.value_width;
    block.width = a_.value_width;
    if (a_.mask != nullptr) {
      const HeadStrides& strides = a_.mask_strides;
      block.mask = a_.mask + batch_ * strides.batch + head * strides.head + row * strides.row +
                   key * a_.mask_column;
      block.mask_row = strides.row;
      block.mask_column = a_.mask_column;
    }
    if (block.keys > 0) {
      const float* const q =
          a_.q + batch_ * a_.q_strides.batch + head * a_.q_strides.head + row * a_.q_strides.row;
      score(q, key, block);
      loops_.soften(block);
      add_values(block, key, keys);
    }
    const bool last =
        a_.causal ? key + kKeyBlock >= least(row + block.rows, a_.keys) : key + keys == a_.keys;
    if (last && block.keys > 0) {
      float* const out = a_.out + batch_ * a_.out_strides.batch + head * a_.out_strides.head +
                         row * a_.out_strides.row;
      loops_.normalize(block, out, a_.out_strides.row);
    }
  }

  // Queries are divided by ln 2, and taken a part of their width at a time if they are very wide.
  void score(const float* q, int64_t key, const ScoreBlock& block) {
    float* const queries = scratch_ + layout_.queries;
    const float factor = a_.scale * 1.44269504088896341f;
    const float* const k = at(a_.k, a_.k_strides) + key * a_.k_strides.row;
    for (int64_t w = 0; w == 0 || w < a_.width; w += kKeyBlock) {
      const int64_t depth = least(kKeyBlock, a_.width - w);
      loops_.scale(q + w, a_.q_strides.row, block.rows, depth, factor, queries);
      if (plan_.few) {
        for (int64_t i = 0; i < block.rows; ++i) {
          loops_.dot(queries + i * kScoreStride, k, a_.k_strides.row, block.keys, depth,
                     block.scores + i * kScoreStride);
        }
        continue;
      }
      for (int64_t j = 0; j < block.keys; j += loops_.panel) {
        const float* const panel = scratch_ + layout_.keys + j * a_.width + w * loops_.panel;
        loops_.multiply(queries, block.rows, panel, loops_.panel, depth, block.keys - j,
                        block.scores + j, kScoreStride, w > 0);
      }
    }
  }

  // The block may see fewer than `keys` keys.
  void add_values(const ScoreBlock& block, int64_t key, int64_t keys) {
    const float* const v = at(a_.v, a_.v_strides) + key * a_.v_strides.row;
    for (int64_t w = 0; w < a_.value_width; w += loops_.panel) {
      const float* const panel = plan_.values_too ? v + w : scratch_ + layout_.values + w * keys;
      loops_.multiply(block.scores, block.rows, panel,
                      plan_.values_too ? a_.v_strides.row : loops_.panel, block.keys,
                      a_.value_width - w, block.out + w, block.out_stride, !block.first);
    }
  }

  const Attention& a_;
  const Plan& plan_;
  const Layout& layout_;
  const AttentionLoops& loops_;
  float* scratch_;
  int64_t batch_ = 0;
  int64_t key_head_ = 0;
};

bool is_empty(const Attention& a) {
  return a.batch == 0 || a.heads == 0 || a.queries == 0 || a.value_width == 0;
}

void clear(const Attention& a) {
  for (int64_t row = 0; row < a.batch * a.heads * a.queries; ++row) {
    const int64_t head = row / a.queries;
    float* const out = a.out + head / a.heads * a.out_strides.batch +
                       head % a.heads * a.out_strides.head + row % a.queries * a.out_strides.row;
    for (int64_t w = 0; w < a.value_width; ++w) out[w] = 0;
  }
}

}  // namespace

size_t attention_scratch(const Attention& attention, size_t threads) {
  if (is_empty(attention)) return 0;
  // Enough for every instruction set: their tiles differ in height, and only some pack values.
  int64_t most = 0;
  for (int64_t tile_rows = 1; tile_rows <= kMostTileRows; ++tile_rows) {
    const Plan plan = plan_of(attention, tile_rows, kUnlimited);
    const int64_t size = layout_of(attention, plan).size;
    most = size > most ? size : most;
  }
  return static_cast<size_t>(most) * sizeof(float) * threads;
}

void attend(const Attention& attention, void* scratch, Workers* workers) {
  if (is_empty(attention)) return;
  if (attention.keys == 0) return clear(attention);
  const AttentionLoops& loops = attention_loops();
  const Plan plan = plan_of(attention, loops.tile_rows, loops.panel / 2);
  const Layout layout = layout_of(attention, plan);
  run_items(plan.items, workers, [&](int64_t thread) {
    return Worker(attention, plan, layout, static_cast<float*>(scratch) + thread * layout.size);
  });
}

}  // namespace rushlight::engine
