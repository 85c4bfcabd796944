#include "rushlight/llm/grammar/run/lexeme_walk.h"

#include <algorithm>
#include <utility>

namespace rushlight::llm::grammar {
namespace {

constexpr uint32_t kCounts = 1u << 31;  // of a transition: it counts

}  // namespace

LexemeWalk::LexemeWalk(const Automaton& automaton, const TokenTrie& trie, size_t words)
    : automaton_(automaton), trie_(trie), words_(words), reach_(automaton, trie), found_(words) {
  for (const CodeRange& range : beyond_ascii_codes()) {
    append_sequences(range, Encoding::Plain, &beyond_ascii_);
  }
  after_calls_.resize(automaton.rules.size());
  for (const State& state : automaton.states) {
    for (const Call& call : state.calls) after_calls_[call.rule].push_back(call.after);
  }
  path_.resize(trie.longest() + 1);
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
  row->loops = loops_of(state);
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
    const bool is_alike = stays_here && !state.accepts && state.most == kEndless;
    if (set->is_counted && (!is_alike || !text.has_trees())) continue;
    if (splits && characters < TextClass::kMaxCharacters) continue;
    best = i;
    most = text.sizes[characters];
    stays = stays_here;
  }
  if (most == 0) return {};
  const TextClass& text = trie_.classes()[best];
  if (set->is_counted) {
    set->text = &text;
    set->least_after_text = static_cast<uint32_t>(state.least);
  } else {
    set->bits = text.up_to[reach_.characters(best, number)];
  }
  if (!text.has_trees()) return {TokenTrie::kRoot, false, text.kinds & ~kBeyondAscii};
  return {stays ? text.rests : text.others, stays, 0};
}

void LexemeWalk::append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set) {
  const Span<const Ending> endings = trie_.endings_at(node);
  if (!set->is_counted) return found_.take(endings, set);
  const State& reached = automaton_.states[state];
  const auto least = static_cast<uint32_t>(reached.least);
  std::vector<Counted>& list = reached.most == kEndless ? set->open : set->closed;
  for (const Ending& ending : endings) {
    list.push_back({ending.token(), ending.before() + counts + least});
  }
}

// Where the call may end at a node: whether tokens may go on from there, whoever called.
void LexemeWalk::note_exit(uint32_t rule, uint32_t node, uint32_t counts, TokenSet* set) {
  const Bytes& follows = following(rule);
  for (uint32_t i = trie_.nodes()[node].children; i < trie_.end_of_children(node); ++i) {
    if (follows[trie_.byte(i)]) return set->exits.push_back({node, counts});
  }
}

// Takes the tokens that end at a node, and those below it. Returns whether the walk must go on
// there, by `made`.
bool LexemeWalk::step_into(const Step& from, uint32_t number, uint32_t next, Step* made,
                           TokenSet* set) {
  const TrieEntry& entry = trie_.entries()[number];
  const uint32_t state = next & ~kCounts, counts = from.counts + (next >= kCounts ? 1 : 0);
  if (entry.child_count == 0) return append(number, counts, state, set), false;
  const TrieNode& node = trie_.nodes()[number];
  const uint64_t known = (from.known & kKindOfByte[entry.byte]) != 0 ? from.known : 0;
  const auto depth = static_cast<size_t>(made - path_.data());
  if (known != 0 && (node.kinds_below & ~known) == 0 &&
      depth + node.bytes_below <= TextClass::kMaxCharacters) {
    return false;
  }
  const Row& row = row_of(state);
  const auto takes_all = [&node](const Taken& taken) {
    return (node.kinds_below & ~taken.kinds) == 0 && node.bytes_below <= taken.characters;
  };
  if (!set->is_counted && ((node.kinds_below & ~row.loops) == 0 ||
                           std::any_of(row.taken.begin(), row.taken.end(), takes_all))) {
    return found_.take(trie_.endings_from(number), set), false;
  }
  if (entry.token != TrieEntry::kNoToken) append(number, counts, state, set);
  *made = {node.children, node.children + entry.child_count, counts, &row, known};
  if (row.accepts) note_exit(automaton_.states[state].rule, number, counts, set);
  return true;
}

// Goes on to the next child that is no leaf, and takes the leaves before it. Returns the state
// after it, or kNone if there is none.
inline uint32_t LexemeWalk::pass_leaves(Step* step, TokenSet* set) {
  const Row& row = *step->row;
  while (step->child < step->end) {
    const TrieEntry& entry = trie_.entries()[step->child++];
    const uint32_t next = row.next_of(entry.byte);
    if (next == kNone) continue;
    if (entry.child_count > 0 || entry.token == TrieEntry::kManyTokens || set->is_counted) {
      return next;
    }
    found_.take(entry.token, set);
  }
  return kNone;
}

// One walk serves all counts: it notes how many each token needs.
void LexemeWalk::walk(uint32_t state, const Tree& tree, TokenSet* set) {
  const Row& first = row_of(state);
  // Where the call can end before a token, what follows it is a place of its own; after text of a
  // class it is not.
  if (tree.is_rests && first.accepts) {
    note_exit(automaton_.states[state].rule, tree.root, 0, set);
  }
  Step* step = path_.data();
  *step = {trie_.nodes()[tree.root].children, trie_.end_of_children(tree.root), 0, &first,
           tree.known};
  while (true) {
    const uint32_t next = pass_leaves(step, set);
    if (next == kNone) {
      if (step-- == path_.data()) break;
    } else if (step_into(*step, step->child - 1, next, step + 1, set)) {
      ++step;
    }
  }
}

void LexemeWalk::find(uint32_t state, TokenSet* set) {
  walk(state, take_text(state, set), set);
  if (!set->is_counted) return found_.finish(set);
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
