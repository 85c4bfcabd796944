// What walks need to know of the states of lexemes, and of what may follow a lexeme.
#include <algorithm>

#include "rushlight/llm/grammar/run/lexeme_walk.h"

namespace rushlight::llm::grammar {

const LexemeWalk::Row& LexemeWalk::row_of(uint32_t state) {
  std::unique_ptr<Row>& row = rows_[state];
  if (row != nullptr) return *row;
  row = std::make_unique<Row>();
  const std::vector<Edge>& edges = automaton_.states[state].edges;
  if (edges.size() > kFewEdges) {
    row->table = std::make_unique<std::array<uint32_t, 256>>();
    row->table->fill(kNone);
  }
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    const uint32_t next = edge.target | (edge.counts ? kCounts : 0);
    if (row->table == nullptr) {
      row->few[i] = {edge.low, edge.high, next};
    } else {
      std::fill(row->table->begin() + edge.low, row->table->begin() + edge.high + 1, next);
    }
  }
  row->accepts = automaton_.states[state].accepts;
  row->is_alike = leads_alike(automaton_.states[state]);
  row->loops = loops_of(state);
  row->dead = dead_kinds(automaton_.states[state]);
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const uint32_t characters = reach_.characters(i, state);
    if (characters == 0) continue;
    row->taken.push_back({trie_.classes()[i].kinds, characters});
  }
  bytes_ += sizeof(Row) + row->taken.capacity() * sizeof(Taken) +
            (row->table != nullptr ? sizeof(*row->table) : 0);
  return *row;
}

uint64_t LexemeWalk::loops_of(uint32_t number) const {
  Bytes looping;
  for (const Edge& edge : automaton_.states[number].edges) {
    if (edge.target != number) continue;
    for (uint32_t byte = edge.low; byte <= edge.high; ++byte) looping[byte] = true;
  }
  uint64_t changing = kOdd;
  if (looping.none()) changing = ~kBeyondAscii;
  for (uint8_t byte = 0; byte < 128 && looping.any(); ++byte) {
    if (!looping[byte]) changing |= kKindOfByte[byte];
  }
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
  const auto [known, is_new] = following_.try_emplace(rule);
  Bytes& made = known->second;
  if (!is_new) return made;
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
  return made;
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
