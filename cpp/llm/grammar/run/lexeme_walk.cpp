#include "rushlight/llm/grammar/run/lexeme_walk.h"

#include <algorithm>
#include <utility>

namespace rushlight::llm::grammar {

namespace {

// The part of the endings of a node that has those of these lengths, of which there are some.
// Where it has no others, `lengths` becomes any.
Span<const Ending> of_lengths(Span<const Ending> endings, uint64_t* lengths) {
  if (*lengths == kAnyLength) return endings;
  const size_t lowest = lowest_bit(*lengths);
  const uint64_t greater = *lengths >> lowest;
  const auto first = std::lower_bound(
      endings.begin(), endings.end(), lowest,
      [](const Ending& ending, size_t length) { return ending.before() < length; });
  const auto last = std::partition_point(first, endings.end(), [lowest, greater](const Ending& e) {
    return greater >> (e.before() - lowest) != 0;
  });
  if ((greater & (greater + 1)) == 0) *lengths = kAnyLength;
  return {first, static_cast<size_t>(last - first)};
}

}  // namespace

LexemeWalk::LexemeWalk(const Automaton& automaton, const TokenTrie& trie,
                       const ByteClasses& classes, TokenGatherer* gathered)
    : automaton_(automaton),
      trie_(trie),
      classes_(classes),
      words_(gathered->words()),
      reach_(automaton, trie),
      gathered_(*gathered) {
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
  rows_.assign(automaton_.states.size(), nullptr);
  made_rows_.clear();
  made_tables_.clear();
  left_rows_ = 0;
  bytes_ = 0;
}

void LexemeWalk::append(uint32_t node, uint32_t counts, uint32_t state, TokenSet* set) {
  uint64_t lengths = lengths_;
  const Span<const Ending> endings = of_lengths(trie_.endings_at(node), &lengths);
  if (!set->is_counted) return gathered_.take(endings, lengths, set);
  const State& reached = automaton_.states[state];
  const auto least = static_cast<uint32_t>(reached.least);
  std::vector<Counted>& list = reached.most == kEndless ? set->open : set->closed;
  for (const Ending& ending : endings) {
    if ((lengths >> ending.before() & 1) == 0) continue;
    list.push_back({ending.token(), ending.before() + counts + least});
  }
}

// Where the call may end at a node: whether tokens may go on from there, whoever called.
void LexemeWalk::note_exit(const Row& row, uint32_t node, uint32_t counts, TokenSet* set) {
  if ((trie_.entries()[node].kinds_below & row.follow_kinds) == 0) return;
  for (uint32_t i = trie_.entries()[node].children; i < trie_.end_of_children(node); ++i) {
    if ((*row.follows)[trie_.byte(i)]) {
      return set->exits.push_back({node, counts, lengths_, false});
    }
  }
}

inline bool LexemeWalk::takes_below(const Row& row, const TrieEntry& entry) {
  if ((entry.kinds_below & ~row.any_taken) != 0) return false;
  if ((entry.kinds_below & ~row.loops) == 0) return true;
  return std::any_of(row.taken, row.taken + row.takes, [&entry](const Taken& taken) {
    return (entry.kinds_below & ~taken.kinds) == 0 && entry.bytes_below <= taken.characters;
  });
}

bool LexemeWalk::takes_below(uint32_t number, uint64_t left, uint32_t node) {
  const State& state = automaton_.states[number];
  const Row& row = row_of(number);
  const TrieEntry& entry = trie_.entries()[node];
  if (!automaton_.rules[state.rule].counts) return takes_below(row, entry);
  const uint32_t bytes = entry.bytes_below;  // each counts at most once
  return state.most == kEndless && bytes < UINT8_MAX && state.least + bytes <= left &&
         (entry.kinds_below & ~row.loops) == 0;
}

// Whether no token below a node, which is in the text of a class yet, is to be found there.
inline bool LexemeWalk::is_pruned(const Row& row, const TrieEntry& entry, size_t depth,
                                  bool is_apart) const {
  // What is longer may be text alone.
  if (depth + entry.bytes_below > TextClass::kMaxCharacters) return false;
  if (!leaving_.has_apart && (entry.kinds_below & leaving_.walked) == 0) return true;
  const uint64_t stays = row.loops & leaving_.text->kinds;
  if (leaving_.done != 0) return !is_apart && (entry.kinds_below & ~(stays | leaving_.done)) == 0;
  return !row.accepts && (entry.kinds_below & ~(stays | row.dead)) == 0;
}

// Whether the tokens from a byte on are not those that are known: text has led to a state apart, or
// leads nowhere.
inline bool LexemeWalk::leaves_out(const Step& step, uint8_t byte, uint32_t next) const {
  if (!leaving_.has_apart || !step.is_text) return false;
  return leaving_.text->begins[byte] ? next == kNone : step.is_apart;
}

// Takes the tokens that end at a node, and those below it. Returns whether the walk must go on
// there: the step after `from`.
template <LexemeWalk::Known known, bool counted>
inline bool LexemeWalk::step_into(Step* from, uint32_t number, uint32_t next, TokenSet* set) {
  const TrieEntry& entry = trie_.entries()[number];
  const uint32_t state = next & ~kCounts, counts = from->counts + (next >= kCounts ? 1 : 0);
  bool is_text = false;
  if (known != Known::Nothing && from->is_text) {
    is_text =
        known == Known::Class ? leaving_.text->begins[entry.byte] : is_known(entry.byte, next);
    // Tokens with an odd character may have left the text before; longer text is not known where
    // counts matter.
    const uint64_t left_by = kKindOfByte[entry.byte] | (entry.kinds_below & kOdd);
    const bool is_long = counted && from - path_.data() > ptrdiff_t{TextClass::kMaxCharacters};
    if (!is_text && !from->is_apart && !is_long && (left_by & leaving_.walked) == 0) return false;
  }
  const Row& row = row_of(state);
  const bool is_apart = known == Known::Class && is_text && leaving_.has_apart && is_apart_[state];
  if (known == Known::Class && is_text &&
      is_pruned(row, entry, static_cast<size_t>(from + 1 - path_.data()), is_apart)) {
    if (entry.token != TrieEntry::kNoToken) append(number, counts, state, set);
    return false;  // part of a character
  }
  if (!counted && takes_below(row, entry)) {
    return gathered_.take_below(trie_, number, lengths_, set), false;
  }
  if (entry.token != TrieEntry::kNoToken && !(known == Known::Loops && is_text)) {
    append(number, counts, state, set);
  }
  const uint32_t on = is_text ? number : way_on(row, number);
  if (on != number) append(on, counts, state, set);
  *(from + 1) = {
      trie_.entries()[on].children, trie_.end_of_children(on), counts, &row, is_text, is_apart};
  if (row.accepts) note_exit(row, number, counts, set);
  return true;
}

template <LexemeWalk::Known known, bool counted>
void LexemeWalk::walk_from(Step* first, TokenSet* set) {
  const TrieEntry* const entries = trie_.entries().data();
  const bool any_length = lengths_ == kAnyLength;
  Step* step = first;
  while (true) {
    if (step->child == step->end) {
      if (step == first) return;
      --step;
      continue;
    }
    ++visited_;
    const uint32_t number = step->child++;
    const TrieEntry& entry = entries[number];
    // A token that ends within a character is not known.
    if (known == Known::Loops && step->is_text &&
        ((entry.kinds_below | kKindOfByte[entry.byte]) & leaving_.sought) == 0 &&
        (entry.byte < 0x80 || entry.token == TrieEntry::kNoToken)) {
      continue;
    }
    const uint32_t next = next_of(*step->row, entry.byte);
    if (known == Known::Class && leaves_out(*step, entry.byte, next)) leave_out(number, set);
    if (next == kNone) continue;
    if (!any_length && (trie_.lengths_from(number) & lengths_) == 0) continue;
    if (entry.child_count > 0) {
      if (step_into<known, counted>(step, number, next, set)) ++step;
    } else if (!counted && any_length && entry.token != TrieEntry::kManyTokens) {
      gathered_.take(entry.token, set);
    } else {
      append(number, step->counts + (next >= kCounts ? 1 : 0), next & ~kCounts, set);
    }
  }
}

// One walk serves all counts: it notes how many each token needs.
void LexemeWalk::walk_child(uint32_t child, const Row& row, TokenSet* set) {
  Step* first = path_.data();
  const bool has_text = leaving_.text != nullptr || leaving_.state != kNone;
  *first = {child, child + 1, 0, &row, has_text, false};
  if (leaving_.state != kNone) {
    walk_from<Known::Loops, false>(first, set);  // of sets that are not counted
  } else if (has_text) {
    set->is_counted ? walk_from<Known::Class, true>(first, set)
                    : walk_from<Known::Class, false>(first, set);
  } else {
    set->is_counted ? walk_from<Known::Nothing, true>(first, set)
                    : walk_from<Known::Nothing, false>(first, set);
  }
}

void LexemeWalk::walk(uint32_t node, uint32_t state, const Bytes& wanted, TokenSet* set) {
  const Row& row = row_of(state);
  const uint32_t end = trie_.end_of_children(node);
  for (uint32_t child = trie_.entries()[node].children; child < end; ++child) {
    const uint8_t byte = trie_.byte(child);
    if (wanted[byte] && next_of(row, byte) != kNone) walk_child(child, row, set);
  }
}

void LexemeWalk::walk_below(uint32_t node, uint32_t state, uint64_t lengths, TokenSet* set) {
  lengths_ = lengths;
  const uint32_t on = way_on(row_of(state), node);
  if (on != node) append(on, 0, state, set);
  walk(on, state, Bytes().set(), set);
  lengths_ = kAnyLength;
}

}  // namespace rushlight::llm::grammar
