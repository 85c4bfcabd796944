// The tokens that begin with text of a class and leave it: what follows the text is walked once for
// all states that do not differ in it.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "rushlight/llm/grammar/run/lexeme_walk.h"

namespace rushlight::llm::grammar {
namespace {

// What may come after text of a class: tokens with bytes that are no character, or an odd one, are
// walked whole. So are those that go on with text of the class, as they are longer, where counts
// matter: the text before has led to states that need different counts.
std::bitset<256> leaving_bytes(const TextClass& text, bool is_counted) {
  return is_counted ? ~text.begins : ~(text.begins & std::bitset<256>().set() << 0x80);
}

// Of the tokens from `first` to before `last`.
void remove(const std::vector<uint32_t>& bits, size_t first, size_t last,
            std::vector<Counted>* tokens) {
  const auto begin = tokens->begin() + static_cast<ptrdiff_t>(first);
  const auto end = tokens->begin() + static_cast<ptrdiff_t>(last);
  tokens->erase(
      std::remove_if(begin, end,
                     [&bits](const Counted& token) { return has_bit(bits.data(), token.token); }),
      end);
}

}  // namespace

// The tokens that begin with text of a class, and leave it.
void LexemeWalk::walk_leaving(uint32_t state, const TextClass& text, bool splits, TokenSet* set) {
  TextStates after = text_states(automaton_, state, text);
  // Of states that follow a space beyond ASCII, which is no text of the class, none is meant.
  const auto text_class = static_cast<size_t>(&text - trie_.classes().data());
  const uint32_t characters = reach_.characters(text_class, state);
  const bool may_fail = characters < TextClass::kMaxCharacters;
  if (may_fail && after.is_chain && after.states.size() > characters) {
    after.states.resize(characters);
    after.stays = false;
  }
  if (splits || !after.is_known) {
    leaving_.text = &text;
    walk(text.leaving, state, Bytes().set(), set);
    leaving_ = {};
    return;
  }
  if (!after.is_chain) return walk_by_byte(after, text, may_fail, set);
  // Tokens that begin with what is no character, or an odd one.
  lengths_ = 1;
  walk(text.rests, state, Bytes().set() << 0x80, set);
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
std::vector<uint32_t> LexemeWalk::states_apart(const TextStates& after, const TextClass& text,
                                               const Bytes& wanted) {
  const Row& first = row_of(after.states[0]);
  const Bytes& follows = following(first.rule);
  Bytes known;
  std::vector<uint8_t> leaving;  // a byte of each class
  bool is_followed = false;
  for (uint32_t i = trie_.entries()[text.rests].children; i < trie_.end_of_children(text.rests);
       ++i) {
    const uint8_t byte = trie_.byte(i);
    if (!wanted[byte]) continue;
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
// that does not differ from it; then the tokens whose text leads to others, or nowhere where it
// `may_fail`, are found, and walked.
void LexemeWalk::walk_by_byte(const TextStates& after, const TextClass& text, bool may_fail,
                              TokenSet* set) {
  const Row& first = row_of(after.states[0]);
  const Bytes wanted = leaving_bytes(text, set->is_counted);
  const std::vector<uint32_t> apart = states_apart(after, text, wanted);
  const size_t before = set->exits.size(), open = set->open.size(), closed = set->closed.size();
  lengths_ = ~uint64_t{1};
  if (first.accepts) note_exit(first, text.rests, 0, set);
  walk(text.rests, after.states[0], wanted, set);
  lengths_ = kAnyLength;
  const size_t end = set->exits.size(), open_end = set->open.size();
  const size_t closed_end = set->closed.size();
  if (!set->is_counted) gathered_.flush(set);
  is_apart_.resize(automaton_.states.size());
  for (const uint32_t state : apart) is_apart_[state] = true;
  left_out_.clear();
  leaving_.text = &text;
  leaving_.walked = kOdd;
  leaving_.done = ~(text.some_kinds | kOdd);
  leaving_.has_apart = may_fail || !apart.empty();
  walk(text.leaving, after.from, Bytes().set(), set);
  leaving_ = {};
  for (const uint32_t state : apart) is_apart_[state] = false;
  if (left_out_.empty() || (before == end && open == open_end && closed == closed_end)) return;
  auto tokens = std::make_shared<std::vector<uint32_t>>(words_);
  for (const uint32_t token : left_out_) set_bit(tokens->data(), token);
  remove(*tokens, open, open_end, &set->open);
  remove(*tokens, closed, closed_end, &set->closed);
  if (before == end) return;
  for (size_t i = before; i < end; ++i) set->exits[i].leaves_out = true;
  set->left_out = std::move(tokens);
}

// Those from a node on, which are not known.
void LexemeWalk::leave_out(uint32_t node, TokenSet* set) {
  for (const Ending& ending : trie_.endings_from(node)) {
    if (!set->is_counted) clear_bit(set->bits.data(), ending.token());
    left_out_.push_back(ending.token());
  }
}

}  // namespace rushlight::llm::grammar
