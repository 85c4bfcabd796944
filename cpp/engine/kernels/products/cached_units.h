// How attention over pages is divided into units, and what computes a unit. A unit is a run of
// query rows of one sequence, taken in tiles, for one head of keys. Where these rows are few, it
// has several neighbouring heads, which are taken in turns block by block: their keys and values
// are neighbours in a page, and are read from memory faster than one head's alone.
#pragma once

#include <cstdint>

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/products/cached_attention.h"
#include "rushlight/engine/loops/products/cached.h"

namespace rushlight::engine::cached {

constexpr int64_t kPartTokens = 1024;
constexpr int64_t kMostRows = 240;  // of a unit: their states stay in cache
inline int64_t quotient_up(int64_t x, int64_t y) { return (x + y - 1) / y; }
constexpr float kLog2E = 1.44269504088896341f;

// Neighbouring tokens of one sequence.
struct Segment {
  int64_t token = 0, tokens = 0;
  int64_t unit = 0;        // its first one
  int64_t head_units = 0;  // of each head of keys
  int64_t heads = 1;       // of a unit, at most
};

// What a unit computes: rows of queries, token by token and head by head within a token.
struct Unit {
  const KvSequence* sequence;
  int64_t token, position;  // of the segment's row 0
  int64_t key_head, heads;
  int64_t first_row, rows;  // of each head
  int64_t state;            // the first of its rows of the unit's state, where it is one head of it
  int64_t state_rows;       // of all heads

  Unit head(int64_t i) const {
    return {sequence, token, position, key_head + i, 1, first_row, rows, i * rows, state_rows};
  }
};

// Where the parts of one thread's scratch memory begin, in floats; and the memory of all threads.
struct Layout {
  int64_t rows;        // of all heads of a unit, at most
  int64_t unit_state;  // of a unit's rows: see State
  int64_t scales, scores, weights, weight_scales, most, factors, keys, values, states, thread;
  int64_t totals, slots, segments, size;
};

Layout layout_of(const CachedAttention& attention, int64_t threads);

class Run;

// Rows of a unit's state, from one of them on: maxima and sums, and results so far.
struct State {
  float *max, *sum, *out;
};

// One thread's work.
class Worker {
 public:
  Worker(const Run& run, float* scratch) : run_(run), scratch_(scratch) {}

  // Computes all of a unit.
  void run(int64_t unit);
  // Computes one part of a unit into its states.
  void run_part(const Unit& unit, int64_t part, float* states);

 private:
  struct Block;

  void round_queries(const Unit& unit);
  void run_blocks(const Unit& unit, int64_t part, float* states);
  void run_block(const Unit& unit, int64_t head, int64_t first, float* states);
  void open_block(const Unit& unit, int64_t head, int64_t first, int64_t end, Block* block);
  void run_tile(const Unit& unit, const Block& block, int64_t tile, float* states);
  static void fetch_part(const PagesAhead& ahead, int64_t part, int64_t parts);
  PagesAhead ahead_of(const Unit& unit, int64_t head, int64_t first) const;
  void score(const Unit& unit, const Block& block, int64_t row, const ScoreBlock& scores,
             const PagesAhead& ahead);
  void add_values(const Block& block, const ScoreBlock& scores, const PagesAhead& ahead);
  void widen(Block* block) const;
  const float* floats_of(const Block& block, int64_t page, bool keys) const;
  CachedTile tile_of(const Block& block, const ScoreBlock& scores) const;

  const Run& run_;
  float* scratch_;
};

// What all threads read.
class Run {
 public:
  Run(const CachedAttention& attention, const KvCache& cache, float* scratch, int64_t threads)
      : a(attention),
        cache(cache),
        shape(kv_page_shape(cache.layout)),
        group(attention.heads / attention.key_heads),
        layout(layout_of(attention, threads)),
        scratch_(scratch),
        segments_(reinterpret_cast<Segment*>(scratch + layout.segments)) {
    divide(threads);
  }

  void attend(Workers* workers);
  void store_tokens(Workers* workers) const;

  Unit unit_at(int64_t number) const {
    int64_t low = 0;
    int64_t high = n_segments_;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (segments_[middle].unit <= number ? low : high) = middle;
    }
    const Segment& s = segments_[low];
    const int64_t rows = s.tokens * group;
    const int64_t in_head = (number - s.unit) % s.head_units;
    Unit unit = {};
    unit.sequence = &cache.sequences[static_cast<size_t>(a.sequence(s.token))];
    unit.token = s.token;
    unit.position = a.position(s.token);
    unit.key_head = (number - s.unit) / s.head_units * s.heads;
    unit.heads = least(s.heads, a.key_heads - unit.key_head);
    unit.first_row = in_head * rows / s.head_units;
    unit.rows = (in_head + 1) * rows / s.head_units - unit.first_row;
    unit.state_rows = unit.heads * unit.rows;
    return unit;
  }
  int64_t tiles_of(const Unit& unit) const { return quotient_up(unit.rows, loops.tile_rows); }
  // The first of a tile's rows, counted in the segment.
  int64_t tile_row(const Unit& unit, int64_t tile) const {
    return unit.first_row + tile * unit.rows / tiles_of(unit);
  }
  State state_at(float* states, int64_t row) const {
    return {states + row, states + layout.rows + row,
            states + 2 * layout.rows + row * shape.value_width};
  }
  int64_t position_of(const Unit& unit, int64_t row) const { return unit.position + row / group; }
  // The first position that a row sees.
  int64_t first_seen(const Unit& unit, int64_t row) const {
    const int64_t end = position_of(unit, row) + 1;
    return a.window > 0 && end > a.window ? end - a.window : 0;
  }
  int64_t first_part(const Unit& unit) const {
    return first_seen(unit, unit.first_row) / kPartTokens;
  }
  int64_t end_part(const Unit& unit) const {
    return position_of(unit, unit.first_row + unit.rows - 1) / kPartTokens + 1;
  }
  uint8_t* head_at(const Unit& unit, int64_t page) const {
    const auto head = static_cast<size_t>(a.layer * a.key_heads + unit.key_head);
    return unit.sequence->pages[page] + head * shape.head_bytes;
  }
  const float* query(const Unit& unit, int64_t row) const {
    const int64_t head = unit.key_head * group + row % group;
    return a.q + (unit.token + row / group) * a.q_strides.token + head * a.q_strides.head;
  }
  void clear(const Unit& unit, float* states) const;
  void join(const Unit& unit, float* states, float* part) const;
  void write(const Unit& unit, float* states) const;
  float* total_at(int64_t unit) const {
    return scratch_ + layout.totals + unit * layout.unit_state;
  }
  float* slot_at(int64_t i) const { return scratch_ + layout.slots + i * layout.unit_state; }
  bool is_int8() const { return cache.layout.dtype == DType::Int8; }

  const CachedAttention& a;
  const KvCache& cache;
  const KvPageShape shape;
  const int64_t group;
  const Layout layout;
  const AttentionLoops& loops = attention_loops();
  const CachedRowLoops& cached = cached_row_loops();
  const CachedDotLoops& dots = cached_dot_loops();

 private:
  void divide(int64_t threads);
  int64_t first_of_quad(int64_t token) const;
  uint8_t* first_head(int64_t token) const;
  void store_keys(int64_t begin, int64_t end) const;
  void store_values(int64_t begin, int64_t end) const;
  void attend_in_parts(Workers* workers, int64_t threads);

  float* scratch_;
  Segment* segments_;
  int64_t n_segments_ = 0;
  int64_t n_units_ = 0;
  double work_ = 0;
};

}  // namespace rushlight::engine::cached
