// Attention over pages by units: a unit is a run of query tiles of one sequence and some heads of
// keys. The positions of a sequence are taken in parts of kPartTokens, wherever a run begins; each
// part has an online softmax of its own (kernels/products/attention.h), and parts are joined in
// their order. So results depend neither on the threads, among which units or, where there are few,
// parts are divided, nor on which tokens come in one call.
#include "rushlight/engine/kernels/products/cached_attention.h"

#include "rushlight/engine/kernels/products/cached_units.h"

namespace rushlight::engine {
namespace cached {
namespace {

constexpr int64_t kHeadRows = 224;  // of one head
constexpr int64_t kLeastRows = 28;
constexpr int64_t kManyUnits = 8;      // enough for a few threads
constexpr int64_t kSlotsOfThread = 4;  // parts that wait to be joined
constexpr float kInf = __builtin_inff();

}  // namespace

Layout layout_of(const CachedAttention& a, int64_t threads) {
  Layout l = {};
  const int64_t key_width = round_up(a.width, 16);
  const int64_t value_width = round_up(a.value_width, 16);
  l.rows = kMostRows;  // as many for few tokens, which have several heads
  l.unit_state = l.rows * (2 + value_width);
  // Queries of a tile in float32, or those of a unit in int16.
  const int64_t shorts = l.rows * key_width / 2;
  const int64_t floats = kMostTileRows * kScoreStride;
  l.scales = floats > shorts ? floats : shorts;
  l.scores = l.scales + l.rows;
  l.weights = l.scores + kMostTileRows * kScoreStride;
  l.weight_scales = l.weights + kMostTileRows * kKeyBlock / 2;
  l.most = l.weight_scales + 16;
  l.factors = l.most + 16;
  l.keys = l.factors + kKeyBlock;
  l.values = l.keys + kKeyBlock * key_width;
  l.states = l.values + kKeyBlock * value_width;
  l.thread = round_up(l.states + 2 * l.unit_state, 16);
  l.totals = threads * l.thread;
  l.slots = l.totals + 2 * threads * l.unit_state;
  l.segments = round_up(l.slots + kSlotsOfThread * threads * l.unit_state, 16);
  l.size = l.segments + a.tokens * static_cast<int64_t>(sizeof(Segment) / sizeof(float));
  return l;
}

// --- dividing -----------------------------------------------------------------------------------

void Run::divide(int64_t threads) {
  for (int64_t i = 0; i < a.tokens; ++i) {
    if (i == 0 || a.sequence(i) != a.sequence(i - 1)) segments_[n_segments_++] = {i, 0, 0, 0, 1};
    segments_[n_segments_ - 1].tokens++;
  }
  int64_t unit_rows = a.tokens * a.heads / kManyUnits;
  unit_rows = unit_rows < kLeastRows ? kLeastRows : least(unit_rows, kHeadRows);
  int64_t single = 0;  // units if each had one head
  for (int64_t i = 0; i < n_segments_; ++i) {
    Segment& s = segments_[i];
    s.head_units = quotient_up(s.tokens * group, unit_rows);
    single += s.head_units * a.key_heads;
    const int64_t seen = a.position(s.token + s.tokens - 1) + 1;
    work_ += work_of(
        {s.tokens * a.heads, a.window > 0 ? least(seen, a.window) : seen, a.width + a.value_width});
  }
  const int64_t most = threads > 1 ? single / (2 * threads) : a.key_heads;
  for (int64_t i = 0; i < n_segments_; ++i) {
    Segment& s = segments_[i];
    const int64_t fit = kMostRows / quotient_up(s.tokens * group, s.head_units);
    s.heads = least(least(fit, most), a.key_heads);
    if (s.heads < 1) s.heads = 1;
    s.unit = n_units_;
    n_units_ += s.head_units * quotient_up(a.key_heads, s.heads);
  }
}

void Run::store_tokens(Workers* workers) const {
  const double work = work_of({a.tokens * a.key_heads, 16, a.width + a.value_width});
  engine::share_out(
      a.tokens, work,
      [](void* data, int64_t begin, int64_t end) {
        const Run& run = *static_cast<const Run*>(data);
        // A quad of values is written by the thread that has its first token.
        begin = run.first_of_quad(begin);
        end = run.first_of_quad(end);
        run.store_keys(begin, end);
        run.store_values(begin, end);
      },
      const_cast<Run*>(this), workers);
}

// The first token, from this one on, that does not follow another one in its quad.
int64_t Run::first_of_quad(int64_t token) const {
  while (token > 0 && token < a.tokens && a.position(token) % kKvQuad != 0 &&
         a.sequence(token) == a.sequence(token - 1)) {
    ++token;
  }
  return token;
}

uint8_t* Run::first_head(int64_t token) const {
  const KvSequence& sequence = cache.sequences[static_cast<size_t>(a.sequence(token))];
  return sequence.pages[a.position(token) / kKvTokens] +
         static_cast<size_t>(a.layer * a.key_heads) * shape.head_bytes;
}

void Run::store_keys(int64_t begin, int64_t end) const {
  constexpr int64_t kMost = 16;
  KeyPlace places[kMost];
  int64_t count = 0;
  for (int64_t token = begin; token < end; ++token) {
    uint8_t* head = first_head(token);
    for (int64_t h = 0; h < a.key_heads; ++h, head += shape.head_bytes) {
      const float* const key = a.k + token * a.k_strides.token + h * a.k_strides.head;
      places[count++] = {key, head, a.position(token) % kKvTokens};
      const bool is_last = token + 1 == end && h + 1 == a.key_heads;
      if (count < kMost && !is_last) continue;
      cached.store_keys(places, count, a.width, cache.layout.dtype, shape);
      count = 0;
    }
  }
}

void Run::store_values(int64_t begin, int64_t end) const {
  while (begin < end) {
    const int64_t at = a.position(begin) % kKvTokens;
    int64_t next = begin + 1;
    while (next < end && a.sequence(next) == a.sequence(begin) &&
           a.position(next) % kKvTokens != 0) {
      ++next;
    }
    uint8_t* head = first_head(begin);
    for (int64_t h = 0; h < a.key_heads; ++h, head += shape.head_bytes) {
      cached.store_values(a.v + begin * a.v_strides.token + h * a.v_strides.head, a.v_strides.token,
                          next - begin, a.value_width, cache.layout.dtype, shape, head, at);
    }
    begin = next;
  }
}

void Run::attend(Workers* workers) {
  workers = workers_for(work_, workers);
  const int64_t threads = workers == nullptr ? 1 : static_cast<int64_t>(workers->count());
  if (threads > 1 && n_units_ < 2 * threads) return attend_in_parts(workers, threads);
  run_items(n_units_, workers,
            [&](int64_t thread) { return Worker(*this, scratch_ + thread * layout.thread); });
}

// Few units: the parts of all of them, some at a time, which are then joined in their order.
void Run::attend_in_parts(Workers* workers, int64_t threads) {
  struct Task {
    int64_t unit, part;
  };
  struct PartWorker {
    const Run& run_;
    const Task* tasks;
    Worker worker;
    void run(int64_t i) {
      worker.run_part(run_.unit_at(tasks[i].unit), tasks[i].part, run_.slot_at(i));
    }
  };
  constexpr int64_t kMost = 64;
  const int64_t slots = least(kSlotsOfThread * threads, kMost);
  for (int64_t u = 0; u < n_units_; ++u) clear(unit_at(u), total_at(u));
  Task next = {0, first_part(unit_at(0))};
  while (next.unit < n_units_) {
    Task tasks[kMost];
    int64_t count = 0;
    while (count < slots && next.unit < n_units_) {
      tasks[count++] = next;
      if (++next.part < end_part(unit_at(next.unit))) continue;
      if (++next.unit < n_units_) next.part = first_part(unit_at(next.unit));
    }
    run_items(count, workers, [&](int64_t thread) {
      return PartWorker{*this, tasks, Worker(*this, scratch_ + thread * layout.thread)};
    });
    for (int64_t i = 0; i < count; ++i) {
      join(unit_at(tasks[i].unit), total_at(tasks[i].unit), slot_at(i));
    }
  }
  for (int64_t u = 0; u < n_units_; ++u) write(unit_at(u), total_at(u));
}

// --- states -------------------------------------------------------------------------------------

void Run::clear(const Unit& unit, float* states) const {
  const State state = state_at(states, 0);
  const int64_t rows = unit.heads * unit.rows;
  for (int64_t i = 0; i < rows; ++i) {
    state.max[i] = -kInf;
    state.sum[i] = 0;
  }
  for (int64_t w = 0; w < rows * shape.value_width; ++w) state.out[w] = 0;
}

void Run::join(const Unit& unit, float* states, float* part) const {
  for (int64_t i = 0; i < unit.heads * unit.rows; ++i) {
    const State to = state_at(states, i);
    const State from = state_at(part, i);
    cached.join(to.max, to.sum, to.out, *from.max, *from.sum, from.out, shape.value_width);
  }
}

void Run::write(const Unit& unit, float* states) const {
  ScoreBlock block = {};
  block.rows = 1;
  block.width = a.value_width;
  for (int64_t h = 0; h < unit.heads; ++h) {
    int64_t token = unit.token + unit.first_row / group;
    int64_t member = unit.first_row % group;
    for (int64_t i = 0; i < unit.rows; ++i) {
      const State state = state_at(states, h * unit.rows + i);
      const int64_t head = (unit.key_head + h) * group + member;
      block.sum = state.sum;
      block.out = state.out;
      loops.normalize(block, a.out + token * a.out_strides.token + head * a.out_strides.head, 0);
      if (++member < group) continue;
      member = 0;
      ++token;
    }
  }
}

}  // namespace cached

size_t cached_attention_scratch(const CachedAttention& attention, size_t threads) {
  const cached::Layout layout = cached::layout_of(attention, static_cast<int64_t>(threads));
  return static_cast<size_t>(layout.size) * sizeof(float);
}

void attend_to_cache(const CachedAttention& attention, const KvCache& cache, void* scratch,
                     Workers* workers) {
  if (attention.tokens == 0) return;
  const size_t threads = workers == nullptr ? 1 : workers->count();
  cached::Run run(attention, cache, static_cast<float*>(scratch), static_cast<int64_t>(threads));
  run.store_tokens(workers);
  run.attend(workers);
}

}  // namespace rushlight::engine
