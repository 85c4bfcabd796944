#include "rushlight/llm/grammar/run/lexeme_walk.h"

#include <algorithm>
#include <utility>

namespace rushlight::llm::grammar {
namespace {

constexpr uint32_t kCounts = 1u << 31;  // in a row: the transition counts

}  // namespace

LexemeWalk::LexemeWalk(const Automaton& automaton, const TokenTrie& trie, size_t words)
    : automaton_(automaton),
      trie_(trie),
      words_(words),
      reach_(automaton, trie),
      rows_path_(trie.longest() + 1),
      counts_path_(trie.longest() + 1),
      exits_path_(trie.longest() + 1) {
  append_sequences({0x80, kLastCode}, Encoding::Plain, &beyond_ascii_);
  after_calls_.resize(automaton.rules.size());
  for (const State& state : automaton.states) {
    for (const Call& call : state.calls) after_calls_[call.rule].push_back(call.after);
  }
  clear();
}

void LexemeWalk::clear() {
  rows_.clear();
  rows_.resize(automaton_.states.size());
  bytes_ = 0;
}

const LexemeWalk::Row& LexemeWalk::row_of(uint32_t state) {
  std::unique_ptr<Row>& row = rows_[state];
  if (row != nullptr) return *row;
  bytes_ += sizeof(Row);
  row = std::make_unique<Row>();
  row->next.fill(kNone);
  for (const Edge& edge : automaton_.states[state].edges) {
    const uint32_t next = edge.target | (edge.counts ? kCounts : 0);
    std::fill(row->next.begin() + edge.low, row->next.begin() + edge.high + 1, next);
  }
  row->loops = loops_of(state, *row);
  return *row;
}

uint64_t LexemeWalk::loops_of(uint32_t state, const Row& row) {
  uint64_t changing = kBroken;
  for (uint8_t byte = 0; byte < 128; ++byte) {
    if (row.next[byte] != state) changing |= kind_of_ascii(byte);
  }
  for (const ByteSequence& bytes : beyond_ascii_) {
    if ((changing & kBeyondAscii) != 0) break;
    if (!leads_back(state, bytes, 0, state)) changing |= kBeyondAscii;
  }
  return ~changing;
}

// Whether each way to write characters, from their byte `read` on, leads from `state` to `to`, and
// counts nothing.
bool LexemeWalk::leads_back(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to) {
  const std::array<uint32_t, 256>& row = row_of(state).next;
  const BytePart& part = bytes[read];
  for (uint32_t byte = part.low; byte <= part.high; ++byte) {
    const uint32_t next = row[byte];
    if (next >= kCounts) return false;
    if (byte > part.low && next == row[byte - 1]) continue;
    const bool is_last = read + 1 == bytes.size();
    if (is_last ? next != to : !leads_back(next, bytes, read + 1, to)) return false;
  }
  return true;
}

const LexemeWalk::Following& LexemeWalk::following(uint32_t rule) {
  const auto [known, is_new] = following_.try_emplace(rule);
  Following& made = known->second;
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
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) made.bytes[byte] = true;
    }
    for (const Jump& jump : state.jumps) visit(jump.target);
    for (const Call& call : state.calls) visit(automaton_.rules[call.rule].start);
    if (!state.accepts) continue;
    for (const uint32_t after : after_calls_[state.rule]) visit(after);
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!made.bytes[byte]) continue;
    made.kinds |= byte < 128 ? kind_of_ascii(static_cast<uint8_t>(byte)) : kBeyondAscii | kBroken;
  }
  return made;
}

// Whether what follows a call may begin with text of a class.
bool LexemeWalk::goes_on(uint32_t rule, const TextClass& text) {
  const Following& after = following(rule);
  for (size_t byte = 0; byte < after.bytes.size(); ++byte) {
    if (after.bytes[byte] && text.bytes[byte]) return true;
  }
  return false;
}

// Takes the class of which the state takes most tokens; returns the tree of the others. Where the
// call can end within the text, nothing that follows it may go on within a token of the class.
LexemeWalk::Tree LexemeWalk::take_text(uint32_t number, TokenSet* set) {
  const State& state = automaton_.states[number];
  size_t best = 0, most = 0;
  bool stays = false;
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const TextClass& text = trie_.classes()[i];
    const uint32_t characters = reach_.characters(i, number);
    if (text.sizes[characters] <= most) continue;
    const bool splits = reach_.ends(i, number) && goes_on(state.rule, text);
    const bool stays_here = reach_.stays(i, number) && !splits;
    if (set->is_counted && (!stays_here || state.accepts || state.most != kEndless)) continue;
    if (splits && characters < TextClass::kMaxCharacters) continue;
    best = i;
    most = text.sizes[characters];
    stays = stays_here;
  }
  Tree tree;
  if (most == 0) return tree;
  const TextClass& text = trie_.classes()[best];
  if (set->is_counted) {
    set->text = &text;
    set->least_after_text = static_cast<uint32_t>(state.least);
  } else {
    set->bits = text.up_to[reach_.characters(best, number)];
  }
  tree.root = stays ? text.rests : 0;
  tree.part = stays ? nullptr : &text.others;
  return tree;
}

void LexemeWalk::append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set) {
  const State& reached = automaton_.states[state];
  if (!set->is_counted) return set->add(trie_.endings_at(node), words_);
  std::vector<Counted>& list = reached.most == kEndless ? set->open : set->closed;
  for (const Ending& ending : trie_.endings_at(node)) {
    const auto least = static_cast<uint32_t>(reached.least);
    list.push_back({ending.token(), ending.before() + counts + least});
  }
}

// One walk serves all counts: it notes how many each token needs.
void LexemeWalk::walk(uint32_t state, const Tree& tree, TokenSet* set) {
  const uint32_t rule = automaton_.states[state].rule;
  const std::vector<TrieNode>& nodes = trie_.nodes();
  const PartNode* part = tree.part != nullptr ? tree.part->data() : nullptr;
  const size_t end = part != nullptr ? tree.part->size() : nodes[tree.root].end;
  rows_path_[0] = &row_of(state);
  counts_path_[0] = 0;
  exits_path_[0] = tree.root != 0 && automaton_.states[state].accepts ? tree.root : kNone;
  for (size_t i = tree.root + size_t{1}; i < end;) {
    const uint32_t whole = part != nullptr ? part[i].whole : static_cast<uint32_t>(i);
    const TrieNode& node = nodes[whole];
    const uint32_t node_end = part != nullptr ? part[i].end : node.end;
    const uint32_t above = node.depth - 1u, depth = node.depth;
    if (exits_path_[above] != kNone && following(rule).bytes[node.byte]) {
      set->exits.push_back({std::exchange(exits_path_[above], kNone), counts_path_[above]});
    }
    const uint32_t next = rows_path_[above]->next[node.byte], target = next & ~kCounts;
    if (next == kNone) {
      i = node_end;
      continue;
    }
    const uint32_t counts = counts_path_[above] + (next >= kCounts ? 1 : 0);
    if (++i == node_end) {
      append(whole, counts, target, set);
      continue;
    }
    const Row& row = row_of(target);
    const bool accepts = automaton_.states[target].accepts;
    if (!set->is_counted && (node.kinds_below & ~row.loops) == 0 &&
        (!accepts || (node.kinds_below & following(rule).kinds) == 0)) {
      set->add(trie_.endings_from(whole), words_);
      i = node_end;
      continue;
    }
    append(whole, counts, target, set);
    rows_path_[depth] = &row;
    counts_path_[depth] = counts;
    exits_path_[depth] = accepts ? whole : kNone;
  }
}

void LexemeWalk::find(uint32_t state, TokenSet* set) {
  const Tree tree = take_text(state, set);
  walk(state, tree, set);
  if (!set->is_counted) return;
  sort_by_counts(&set->open);
  if (set->open.size() * 2 < words_) return;
  set->bits.resize(words_);
  for (const Counted& token : set->open) set_bit(set->bits.data(), token.what);
}

// In linear time, except for tokens that need very many.
void LexemeWalk::sort_by_counts(std::vector<Counted>* tokens) const {
  const auto last = static_cast<uint32_t>(trie_.longest() + 2);
  std::vector<uint32_t> starts(last + 2, 0);
  for (const Counted& token : *tokens) ++starts[std::min(token.counts, last) + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  const auto tail = static_cast<ptrdiff_t>(starts[last]);
  std::vector<Counted> sorted(tokens->size());
  for (const Counted& token : *tokens) sorted[starts[std::min(token.counts, last)]++] = token;
  std::sort(sorted.begin() + tail, sorted.end(),
            [](const Counted& a, const Counted& b) { return a.counts < b.counts; });
  *tokens = std::move(sorted);
}

}  // namespace rushlight::llm::grammar
