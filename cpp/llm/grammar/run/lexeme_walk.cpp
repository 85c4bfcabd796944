#include "rushlight/llm/grammar/run/lexeme_walk.h"

#include <algorithm>
#include <utility>

namespace rushlight::llm::grammar {

namespace {

size_t lowest_bit(uint64_t bits) {
  size_t number = 0;
  for (size_t width = 32; width > 0; width /= 2) {
    if ((bits & ((uint64_t{1} << width) - 1)) != 0) continue;
    bits >>= width;
    number += width;
  }
  return number;
}

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
    // Tokens with an odd character may have left the text before.
    const uint64_t left_by = kKindOfByte[entry.byte] | (entry.kinds_below & kOdd);
    if (!is_text && !from->is_apart && (left_by & leaving_.walked) == 0) return false;
  }
  const Row& row = row_of(state);
  const bool is_apart =
      known == Known::Class && is_text && leaving_.has_apart && is_apart_[state];
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
  *(from + 1) = {trie_.entries()[on].children, trie_.end_of_children(on), counts, &row, is_text,
                 is_apart};
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

template <typename Wanted>
void LexemeWalk::walk(uint32_t node, uint32_t state, const Wanted& wanted, TokenSet* set) {
  const Row& row = row_of(state);
  const uint32_t end = trie_.end_of_children(node);
  for (uint32_t child = trie_.entries()[node].children; child < end; ++child) {
    const uint8_t byte = trie_.byte(child);
    if (next_of(row, byte) != kNone && wanted(byte)) walk_child(child, row, set);
  }
}

void LexemeWalk::walk_below(uint32_t node, uint32_t state, uint64_t lengths, TokenSet* set) {
  lengths_ = lengths;
  const uint32_t on = way_on(row_of(state), node);
  if (on != node) append(on, 0, state, set);
  walk(on, state, [](uint8_t) { return true; }, set);
  lengths_ = kAnyLength;
}

// Takes the class of which the state takes most tokens; null if there is none. Where the call can
// end within the text, and what follows it go on with a text of the class, it `splits`.
const TextClass* LexemeWalk::take_text(uint32_t number, bool* splits, TokenSet* set) {
  const State& state = automaton_.states[number];
  const TextClass* best = nullptr;
  size_t most = 0;
  uint32_t best_characters = 0;
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const TextClass& text = trie_.classes()[i];
    const uint32_t characters = reach_.characters(i, number);
    if (text.sizes[characters] <= most) continue;
    const bool may_split = reach_.ends(i, number) && goes_on(state.rule, text);
    if (may_split && characters < TextClass::kMaxCharacters) continue;
    const bool is_alike = reach_.stays(i, number) && !state.accepts && state.most == kEndless;
    if (set->is_counted && (!is_alike || may_split)) continue;
    best = &text;
    most = text.sizes[characters];
    best_characters = characters;
    *splits = may_split;
  }
  if (best == nullptr) return nullptr;
  if (set->is_counted) {
    set->text = best;
    set->least_of_text = static_cast<uint32_t>(state.least + 1);
  } else {
    set->bits = best->up_to[best_characters];
  }
  return best;
}

// Where counts matter: takes the tokens whose first byte leads to a state in which text of a class
// stays, as after an escape, and that are text of the class; the class is null if they are few.
LexemeWalk::AfterByte LexemeWalk::take_text_after_byte(uint32_t number, TokenSet* set) {
  constexpr size_t kFewTokens = 512;
  AfterByte best;
  size_t most = kFewTokens;
  const std::vector<Edge>& edges = automaton_.states[number].edges;
  for (const Edge& edge : edges) {
    const TextClass* text = stays_in(edge.target);
    if (text == nullptr) continue;
    AfterByte ending;
    size_t tokens = 0;
    for (const Edge& other : edges) {
      if (other.target != edge.target || other.counts != edge.counts) continue;
      for (uint32_t byte = other.low; byte <= other.high && byte < 0x80; ++byte) {
        ending.first[byte] = text->begins[byte];
        if (text->begins[byte]) tokens += trie_.count_from(static_cast<uint8_t>(byte));
      }
    }
    if (tokens <= most) continue;
    most = tokens;
    best = ending;
    best.text = text;
    const uint64_t least = automaton_.states[edge.target].least + (edge.counts ? 1 : 0);
    set->least_of_text = static_cast<uint32_t>(least);
  }
  set->text = best.text;
  if (best.text == nullptr) return best;
  set->begin.resize(words_);
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    if (best.first[byte]) trie_.add_tokens_from(byte, set->begin.data());
  }
  return best;
}

// Whether nothing that comes in words leads to a state that tells letters apart, nor to the end of
// a call after which words go on.
bool LexemeWalk::takes_words_alike(uint32_t state) {
  const Bytes& follows = following(automaton_.states[state].rule);
  const bool words_follow = (follows & TokenTrie::bytes_of_words()).any();
  constexpr size_t kMostStates = 16;
  std::vector<uint32_t> states = {state};
  for (size_t i = 0; i < states.size(); ++i) {
    const Row& row = row_of(states[i]);
    if (!row.is_alike || states.size() > kMostStates) return false;
    if (row.accepts && words_follow) return false;
    for (const uint8_t byte : {'a', 'A', '0', ' '}) {
      const uint32_t next = next_of(row, byte);
      if (next == kNone) continue;
      const uint32_t target = next & ~kCounts;
      if (std::find(states.begin(), states.end(), target) == states.end()) states.push_back(target);
    }
  }
  return true;
}

// All tokens, except for those that begin with some bytes.
void LexemeWalk::walk_starts(uint32_t state, const bool* left_out, TokenSet* set) {
  const auto wanted = [left_out](uint8_t byte) { return left_out == nullptr || !left_out[byte]; };
  const Row& row = row_of(state);
  bool has_words = false;
  for (uint8_t byte = ' '; byte <= 'z'; ++byte) {
    if (byte > ' ' && byte < '0') continue;
    has_words = has_words || (wanted(byte) && next_of(row, byte) != kNone);
  }
  if (!has_words) return walk(trie_.others(), state, wanted, set);
  if (!takes_words_alike(state)) return walk(TokenTrie::kRoot, state, wanted, set);
  walk(trie_.words(), state, wanted, set);
  walk(trie_.others(), state, wanted, set);
}

// As `take_text_after_byte`, of bytes that many tokens begin with, as the space; where counts do not
// matter. Returns whether a byte was taken, by byte.
std::array<bool, 256> LexemeWalk::take_many_after_byte(uint32_t state, TokenSet* set) {
  constexpr size_t kManyTokens = 4096;
  std::array<bool, 256> taken{};
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    const uint32_t next = next_of(row_of(state), byte);
    if (next == kNone || trie_.count_from(byte) < kManyTokens) continue;
    const TextClass* best = nullptr;
    uint32_t best_characters = 0;
    for (size_t i = 0; i < trie_.classes().size(); ++i) {
      const TextClass& text = trie_.classes()[i];
      const uint32_t characters = reach_.characters(i, next & ~kCounts);
      if (characters == 0 || !text.begins[byte]) continue;
      const uint32_t all = std::min(characters + 1, TextClass::kMaxCharacters);
      if (best != nullptr && text.sizes[all] <= best->sizes[best_characters]) continue;
      best = &text;
      best_characters = all;
    }
    if (best == nullptr) continue;
    taken[byte] = true;
    set->bits.resize(words_);
    trie_.add_tokens_from(byte, best->up_to[best_characters].data(), set->bits.data());
    leaving_.text = best;
    walk(best->leaving, state, [byte](uint8_t other) { return other == byte; }, set);
    leaving_ = {};
  }
  return taken;
}

// All tokens.
void LexemeWalk::walk_after_byte(uint32_t state, TokenSet* set) {
  if (!set->is_counted) {
    const std::array<bool, 256> taken = take_many_after_byte(state, set);
    return walk_starts(state, taken.data(), set);
  }
  const AfterByte after = take_text_after_byte(state, set);
  walk_starts(state, after.first, set);
  if (after.text == nullptr) return;
  leaving_.text = after.text;
  walk(after.text->leaving, state, [&after](uint8_t byte) { return after.first[byte]; }, set);
  leaving_ = {};
}

// The tokens that begin with text of a class, and leave it.
void LexemeWalk::walk_leaving(uint32_t state, const TextClass& text, bool splits, TokenSet* set) {
  const auto any = [](uint8_t) { return true; };
  const TextStates after = text_states(automaton_, state, text);
  if (splits || !after.is_known || (set->is_counted && !after.is_chain)) {
    leaving_.text = &text;
    walk(text.leaving, state, any, set);
    leaving_ = {};
    return;
  }
  if (!after.is_chain) return walk_by_byte(after, text, set);
  // Tokens that begin with what is no character, or an odd one.
  lengths_ = 1;
  walk(text.rests, state, [](uint8_t byte) { return byte >= 0x80; }, set);
  walk_by_length(after, text, set);
  lengths_ = kAnyLength;
}

// By the byte that leaves the class: once for all lengths after which it leads to the same state.
void LexemeWalk::walk_by_length(const TextStates& after, const TextClass& text, TokenSet* set) {
  if (after.states.empty()) return;
  std::vector<const Row*> rows;
  const Row* accepting_row = nullptr;
  uint64_t accepting = 0;
  const size_t size = after.states.size();
  // Of the last state, if it stays: all greater lengths as well.
  const auto length_of = [&](size_t n) {
    return (n + 1 == size && after.stays ? UINT64_MAX : uint64_t{1}) << (n + 1);
  };
  for (size_t n = 0; n < size; ++n) {
    rows.push_back(&row_of(after.states[n]));
    if (!rows[n]->accepts) continue;
    accepting |= length_of(n);
    accepting_row = rows[n];
  }
  lengths_ = accepting;
  if (accepting_row != nullptr) note_exit(*accepting_row, text.rests, 0, set);
  const uint64_t known = after.stays ? ~uint64_t{1} : (uint64_t{2} << size) - 2;
  for (uint32_t child = trie_.entries()[text.rests].children;
       child < trie_.end_of_children(text.rests); ++child) {
    const size_t byte_class = classes_.of(trie_.byte(child));
    const auto row_after = [&](size_t length) { return rows[std::min(length, size) - 1]; };
    for (uint64_t left = trie_.lengths_from(child) & known; left != 0; left &= ~lengths_) {
      const Row& row = *row_after(lowest_bit(left));
      const uint32_t next = row.next[byte_class];
      lengths_ = 0;
      for (uint64_t rest = left; rest != 0; rest &= rest - 1) {
        const size_t length = lowest_bit(rest);
        if (row_after(length)->next[byte_class] == next) lengths_ |= uint64_t{1} << length;
      }
      if (next != kNone) walk_child(child, row, set);
    }
  }
}

// Returns the states that differ from the first in what leaves the class.
std::vector<uint32_t> LexemeWalk::states_apart(const TextStates& after, const TextClass& text) {
  const Row& first = row_of(after.states[0]);
  const Bytes& follows = following(first.rule);
  std::bitset<256> known;
  std::vector<uint8_t> leaving;  // a byte of each class
  bool is_followed = false;
  for (uint32_t i = trie_.entries()[text.rests].children; i < trie_.end_of_children(text.rests);
       ++i) {
    const uint8_t byte = trie_.byte(i);
    if (byte >= 0x80 && text.begins[byte]) continue;  // kOdd
    is_followed = is_followed || follows[byte];
    if (!known[classes_.of(byte)]) leaving.push_back(byte);
    known[classes_.of(byte)] = true;
  }
  std::vector<uint32_t> apart;
  for (const uint32_t state : after.states) {
    const Row& row = row_of(state);
    const bool same = std::all_of(leaving.begin(), leaving.end(), [&](uint8_t byte) {
      return next_of(first, byte) == next_of(row, byte);
    });
    if (!same || (is_followed && first.accepts != row.accepts)) apart.push_back(state);
  }
  return apart;
}

// What follows the text is taken for all tokens as if the text led to the first state, or to one
// that does not differ from it; then the tokens whose text leads to others are found, and walked.
void LexemeWalk::walk_by_byte(const TextStates& after, const TextClass& text, TokenSet* set) {
  const Row& first = row_of(after.states[0]);
  const std::vector<uint32_t> apart = states_apart(after, text);
  const auto leaves = [&text](uint8_t byte) { return byte < 0x80 || !text.begins[byte]; };
  const size_t before = set->exits.size();
  lengths_ = ~uint64_t{1};
  if (first.accepts) note_exit(first, text.rests, 0, set);
  walk(text.rests, after.states[0], leaves, set);
  lengths_ = kAnyLength;
  const size_t end = set->exits.size();
  gathered_.flush(set);
  is_apart_.resize(automaton_.states.size());
  for (const uint32_t state : apart) is_apart_[state] = true;
  left_out_.clear();
  leaving_.text = &text;
  leaving_.walked = kOdd;
  leaving_.done = ~(text.some_kinds | kOdd);
  leaving_.has_apart = !apart.empty();
  walk(text.leaving, after.from, [](uint8_t) { return true; }, set);
  leaving_ = {};
  for (const uint32_t state : apart) is_apart_[state] = false;
  if (left_out_.empty() || before == end) return;
  for (size_t i = before; i < end; ++i) set->exits[i].leaves_out = true;
  auto tokens = std::make_shared<std::vector<uint32_t>>(words_);
  for (const uint32_t token : left_out_) set_bit(tokens->data(), token);
  set->left_out = std::move(tokens);
}

void LexemeWalk::leave_out(uint32_t node, TokenSet* set) {
  for (const Ending& ending : trie_.endings_from(node)) {
    clear_bit(set->bits.data(), ending.token());
    left_out_.push_back(ending.token());
  }
}

// Takes the tokens that lead back to the state, where they are of most kinds of characters and of
// more than a class has.
bool LexemeWalk::take_loops(uint32_t state, TokenSet* set) {
  constexpr size_t kFewKinds = 16, kMostSets = 20;
  const Row& row = row_of(state);
  if (set->is_counted || std::bitset<64>(row.loops).count() < kFewKinds) return false;
  if (TokenTrie::cost_of_tokens(row.loops) > kMostSets) return false;
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const TextClass& text = trie_.classes()[i];
    if ((row.loops & ~(text.kinds | kControl)) == 0 && reach_.characters(i, state) > 0) {
      return false;
    }
  }
  set->bits.resize(words_);
  trie_.add_tokens_of(row.loops, set->bits.data());
  return true;
}

// The tokens that have other characters than those that lead back to the state, all others being
// taken: what follows text of a class that mostly does is walked once for all.
void LexemeWalk::walk_loops(uint32_t state, TokenSet* set) {
  const Row& row = row_of(state);
  leaving_.state = state;
  leaving_.loops = row.loops;
  leaving_.sought = ~(row.accepts ? row.loops : row.loops | row.dead);
  const TextClass* text = row.accepts ? nullptr : mostly_loops(row);
  TextStates after;
  if (text != nullptr) after = text_states(automaton_, state, *text);
  if (text == nullptr || !after.is_known || after.is_chain) {
    walk_starts(state, nullptr, set);
    leaving_ = {};
    return;
  }
  walk_starts(state, text->begins, set);
  std::array<bool, 256> leaves{};
  for (size_t byte = 0; byte < leaves.size(); ++byte) leaves[byte] = !text->begins[byte];
  leaving_.sought &= text->some_kinds | kOdd;
  walk_starts(state, leaves.data(), set);
  leaving_ = {};
  after.states.insert(after.states.begin(), state);
  walk_by_byte(after, *text, set);
}

// The largest class of which few kinds of characters lead on from the state, and none leads nowhere.
const TextClass* LexemeWalk::mostly_loops(const Row& row) const {
  constexpr size_t kFewKinds = 4;
  const TextClass* best = nullptr;
  for (const TextClass& text : trie_.classes()) {
    const uint64_t others = text.some_kinds & ~row.loops;
    if ((others & (row.dead | kBeyondAscii)) != 0 || (text.kinds & others) != others) continue;
    if (std::bitset<64>(others).count() > kFewKinds) continue;
    if (best == nullptr || text.all() > best->all()) best = &text;
  }
  return best;
}

void LexemeWalk::find(uint32_t state, TokenSet* set) {
  if (take_loops(state, set)) {
    walk_loops(state, set);
    return gathered_.finish(set);
  }
  bool splits = false;
  if (const TextClass* text = take_text(state, &splits, set)) {
    walk_starts(state, text->begins, set);
    walk_leaving(state, *text, splits, set);
  } else {
    walk_after_byte(state, set);
  }
  if (!set->is_counted) return gathered_.finish(set);
  sort_by_counts(trie_.longest(), &set->open);
  if (set->open.size() * 2 < words_) return;
  set->bits.resize(words_);
  for (const Counted& token : set->open) set_bit(set->bits.data(), token.token);
}

uint32_t LexemeWalk::similar(uint32_t state) {
  // The state after most bytes, in which most change nothing: no other is similar to that one.
  const auto most = [this](const Row& row, uint32_t next) {
    size_t bytes = 0;
    for (uint8_t byte = ' '; byte < 0x7F; ++byte) bytes += next_of(row, byte) == next ? 1 : 0;
    return bytes * 2 > 0x7F - ' ';
  };
  const Row& row = row_of(state);
  uint32_t like = kNone, lead = 0;
  for (uint8_t byte = ' '; byte < 0x7F; ++byte) {
    const uint32_t next = next_of(row, byte);
    if (lead == 0) like = next;
    lead = next == like ? lead + 1 : lead - 1;
  }
  if (like >= kCounts || like == state || !most(row, like)) return state;
  const Row& other = row_of(like);
  if (!most(other, like)) return state;
  size_t differing = 0;  // tokens
  const uint32_t end = trie_.end_of_children(TokenTrie::kRoot);
  for (uint32_t i = trie_.entries()[TokenTrie::kRoot].children; i < end; ++i) {
    if (next_of(row, trie_.byte(i)) == next_of(other, trie_.byte(i))) continue;
    differing += trie_.endings_from(i).size();
  }
  return differing * 8 < trie_.tokens() ? like : state;
}

// Tokens that begin with other bytes than those that differ are the same.
void LexemeWalk::adapt(uint32_t state, uint32_t like, TokenSet* set) {
  const Row& row = row_of(state);
  const Row& other = row_of(like);
  set->bits.resize(words_);
  for (const uint32_t token : set->few) set_bit(set->bits.data(), token);
  set->few.clear();
  Bytes differing;
  const uint32_t end = trie_.end_of_children(TokenTrie::kRoot);
  for (uint32_t i = trie_.entries()[TokenTrie::kRoot].children; i < end; ++i) {
    const uint8_t byte = trie_.byte(i);
    if (next_of(row, byte) == next_of(other, byte)) continue;
    differing[byte] = true;
    for (const Ending& ending : trie_.endings_from(i)) {
      clear_bit(set->bits.data(), ending.token());
    }
  }
  set->excluded |= differing;
  for (Exit& exit : set->exits) exit.excludes = true;
  walk(TokenTrie::kRoot, state, [&differing](uint8_t byte) { return differing[byte]; }, set);
  gathered_.finish(set);
}

}  // namespace rushlight::llm::grammar
