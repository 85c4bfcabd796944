// The tokens that go on from a state: what is known of them at once, and which are walked.
#include <algorithm>
#include <bitset>
#include <vector>

#include "rushlight/llm/grammar/run/lexeme_walk.h"

namespace rushlight::llm::grammar {

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
  constexpr size_t kMostStates = 256;
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

// The tokens that begin with some bytes.
void LexemeWalk::walk_starts(uint32_t state, const Bytes& wanted, TokenSet* set) {
  const Row& row = row_of(state);
  bool has_words = false;
  for (uint8_t byte = ' '; byte <= 'z'; ++byte) {
    if (byte > ' ' && byte < '0') continue;
    has_words = has_words || (wanted[byte] && next_of(row, byte) != kNone);
  }
  if (!has_words) return walk(trie_.others(), state, wanted, set);
  if (!takes_words_alike(state)) return walk(TokenTrie::kRoot, state, wanted, set);
  // A form stands for words of any first letter of its kind.
  Bytes forms = wanted;
  const auto widen = [&wanted, &forms](uint8_t form, uint8_t last) {
    for (uint8_t byte = form; byte <= last; ++byte) forms[form] = forms[form] || wanted[byte];
  };
  widen('a', 'z');
  widen('A', 'Z');
  widen('0', '9');
  walk(trie_.words(), state, forms, set);
  walk(trie_.others(), state, wanted, set);
}

// As `take_text_after_byte`, of bytes that many tokens begin with, as the space; where counts do
// not matter. Returns whether a byte was taken, by byte.
LexemeWalk::Bytes LexemeWalk::take_many_after_byte(uint32_t state, TokenSet* set) {
  const size_t many = trie_.tokens() / 32;
  Bytes taken;
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    const uint32_t next = next_of(row_of(state), byte);
    if (next == kNone || trie_.count_from(byte) < many) continue;
    const TextClass* best = nullptr;
    uint32_t best_characters = 0;
    for (size_t i = 0; i < trie_.classes().size(); ++i) {
      const TextClass& text = trie_.classes()[i];
      const uint32_t characters = reach_.characters(i, next & ~kCounts);
      if (characters == 0 || !text.begins[byte]) continue;
      const bool may_split = reach_.ends(i, next & ~kCounts) && goes_on(row_of(state).rule, text);
      if (may_split && characters < TextClass::kMaxCharacters) continue;
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
    walk(best->leaving, state, Bytes().set(byte), set);
    leaving_ = {};
  }
  return taken;
}

// All tokens.
void LexemeWalk::walk_after_byte(uint32_t state, TokenSet* set) {
  if (!set->is_counted) {
    const Bytes taken = take_many_after_byte(state, set);
    return walk_starts(state, ~taken, set);
  }
  const AfterByte after = take_text_after_byte(state, set);
  walk_starts(state, ~after.first, set);
  if (after.text == nullptr) return;
  leaving_.text = after.text;
  walk(after.text->leaving, state, after.first, set);
  leaving_ = {};
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
  // All text of the class leads back: what follows it is walked once for all.
  const bool all_leads_back = text != nullptr && after.is_chain && after.stays &&
                              after.states.size() == 1 && after.states[0] == state;
  if (all_leads_back) {
    walk_starts(state, ~text->begins, set);
    lengths_ = 1;  // tokens that begin with what is no character, or an odd one
    walk(text->rests, state, Bytes().set() << 0x80, set);
    lengths_ = ~uint64_t{1};
    walk(text->rests, state, Bytes().set(), set);
    lengths_ = kAnyLength;
    leaving_ = {};
    return;
  }
  if (text == nullptr || !after.is_known || after.is_chain) {
    walk_starts(state, Bytes().set(), set);
    leaving_ = {};
    return;
  }
  walk_starts(state, ~text->begins, set);
  leaving_.sought &= text->some_kinds | kOdd;
  walk_starts(state, text->begins, set);
  leaving_ = {};
  after.states.insert(after.states.begin(), state);
  walk_by_byte(after, *text, true, set);
}

// The largest class of which few kinds of characters lead on from the state, and none leads
// nowhere.
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
  const TextClass* text = take_text(state, &splits, set);
  if (set->is_counted) {
    const size_t taken = text != nullptr ? text->all() : 0;
    const TextClass* const larger = take_text_by_least(state, taken, set);
    if (larger != nullptr) text = larger;
  }
  if (text != nullptr) {
    walk_starts(state, ~text->begins, set);
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
  walk(TokenTrie::kRoot, state, differing, set);
  gathered_.finish(set);
}

}  // namespace rushlight::llm::grammar
