// What walks need to know of the states of lexemes, and of what may follow a lexeme.
#include <algorithm>

#include "rushlight/llm/grammar/run/lexeme_walk.h"

namespace rushlight::llm::grammar {

const LexemeWalk::Row& LexemeWalk::add_row(uint32_t state) {
  const size_t size = classes_.size();
  if (left_rows_ == 0) {
    made_rows_.push_back(std::make_unique<Row[]>(kRowsAtOnce));
    made_tables_.push_back(std::make_unique<uint32_t[]>(kRowsAtOnce * size));
    left_rows_ = kRowsAtOnce;
    bytes_ += kRowsAtOnce * (sizeof(Row) + size * sizeof(uint32_t));
  }
  Row* const row = &made_rows_.back()[--left_rows_];
  row->next = &made_tables_.back()[left_rows_ * size];
  row->rule = automaton_.states[state].rule;
  std::fill_n(row->next, size, kNone);
  for (const Edge& edge : automaton_.states[state].edges) {
    const uint32_t next = edge.target | (edge.counts ? kCounts : 0);
    std::fill(&row->next[classes_.of(edge.low)], &row->next[classes_.of(edge.high)] + 1, next);
  }
  uint64_t taken = kOdd;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (row->next[i] != kNone) taken |= classes_.kinds(i);
  }
  row->dead = ~taken;
  row->accepts = automaton_.states[state].accepts;
  const bool is_endless =
      !automaton_.rules[row->rule].counts || automaton_.states[state].most == kEndless;
  row->stays = !row->accepts && is_endless && reach_.stays(0, state);
  row->is_alike = is_alike(*row, 'a', 'z') && is_alike(*row, 'A', 'Z') && is_alike(*row, '0', '9');
  row->loops = loops_of(state, *row);
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const uint32_t characters = reach_.characters(i, state);
    if (characters == 0) continue;
    row->taken[row->takes++] = {trie_.classes()[i].kinds, characters};
    row->any_taken |= trie_.classes()[i].kinds;
  }
  row->any_taken |= row->loops;
  if (row->accepts) {
    row->follows = &following(row->rule);
    for (size_t byte = 0; byte < row->follows->size(); ++byte) {
      if ((*row->follows)[byte]) row->follow_kinds |= kKindOfByte[byte];
    }
  }
  rows_[state] = row;  // when it is whole: memory may end before
  return *row;
}

// Whether all bytes of a range lead to the same.
bool LexemeWalk::is_alike(const Row& row, uint8_t low, uint8_t high) const {
  const uint32_t target = next_of(row, high);
  return std::all_of(&row.next[classes_.of(low)], &row.next[classes_.of(high)],
                     [target](uint32_t next) { return next == target; });
}

uint64_t LexemeWalk::loops_of(uint32_t number, const Row& row) const {
  uint64_t changing = kOdd;
  bool loops = false, reads_beyond_ascii = false;
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (classes_.first(i) >= 0x80) {
      reads_beyond_ascii = reads_beyond_ascii || row.next[i] != kNone;
    } else if (row.next[i] == kNone || (row.next[i] & ~kCounts) != number) {
      changing |= classes_.kinds(i);
    } else {
      loops = true;
    }
  }
  if (!loops) changing = ~kBeyondAscii;
  if (!reads_beyond_ascii) changing |= kBeyondAscii;
  for (const ByteSequence& bytes : beyond_ascii_) {
    if ((changing & kBeyondAscii) != 0) break;
    if (!leads_back(number, bytes, 0, number)) changing |= kBeyondAscii;
  }
  return ~changing;
}

// Whether each way to write characters, from their byte `read` on, leads from `state` to `to`.
bool LexemeWalk::leads_back(uint32_t state, const ByteSequence& bytes, size_t read,
                            uint32_t to) const {
  const BytePart& part = bytes[read];
  uint32_t taken = 0;  // each byte leads to one state at most
  for (const Edge& edge : automaton_.states[state].edges) {
    const uint32_t low = std::max(edge.low, part.low), high = std::min(edge.high, part.high);
    if (low > high) continue;
    taken += high - low + 1;
    const bool is_last = read + 1 == bytes.size();
    if (is_last ? edge.target != to : !leads_back(edge.target, bytes, read + 1, to)) return false;
  }
  return taken == part.high - part.low + 1u;
}

const LexemeWalk::Bytes& LexemeWalk::following(uint32_t rule) {
  const auto known = following_.find(rule);
  if (known != following_.end()) return known->second;
  Bytes made = {};
  std::vector<bool> seen(automaton_.states.size());
  std::vector<uint32_t> open;
  const auto visit = [&](uint32_t state) {
    if (!seen[state]) open.push_back(state);
    seen[state] = true;
  };
  for (const uint32_t state : after_calls_[rule]) visit(state);
  while (!open.empty()) {
    const State& state = automaton_.states[open.back()];
    open.pop_back();
    for (const Edge& edge : state.edges) {
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) made[byte] = true;
    }
    for (const Jump& jump : state.jumps) visit(jump.target);
    for (const Call& call : state.calls) visit(automaton_.rules[call.rule].start);
    if (!state.accepts) continue;
    for (const uint32_t after : after_calls_[state.rule]) visit(after);
  }
  return following_.emplace(rule, made).first->second;
}

// Whether what follows a call may begin with text of a class.
bool LexemeWalk::goes_on(uint32_t rule, const TextClass& text) {
  const Bytes& after = following(rule);
  for (size_t byte = 0; byte < after.size(); ++byte) {
    if (after[byte] && text.bytes[byte]) return true;
  }
  return false;
}

// The largest class all of whose text leads back to a state where it goes on for ever.
const TextClass* LexemeWalk::stays_in(uint32_t number) const {
  const State& state = automaton_.states[number];
  const TextClass* best = nullptr;
  if (state.accepts || state.most != kEndless) return nullptr;
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const TextClass& text = trie_.classes()[i];
    if (!reach_.stays(i, number)) continue;
    if (best == nullptr || text.all() > best->all()) best = &text;
  }
  return best;
}

}  // namespace rushlight::llm::grammar
