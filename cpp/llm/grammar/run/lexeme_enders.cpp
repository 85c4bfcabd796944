// Text of a class where counts matter, and the states that it leads to need different counts to the
// end, as in a search within bounds: tokens are taken as if they led to the state that needs most,
// and those that need less are found by what they end with.
#include <algorithm>
#include <bitset>
#include <utility>
#include <vector>

#include "rushlight/llm/grammar/run/lexeme_walk.h"

namespace rushlight::llm::grammar {
namespace {

size_t count_of(uint64_t kinds) { return std::bitset<64>(kinds).count(); }

bool has(const std::vector<uint32_t>& states, uint32_t state) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

}  // namespace

struct LexemeWalk::EnderSearch {
  static constexpr size_t kMostSets = 8, kMost = 1000;
  static constexpr size_t kTries = 8;  // to read so many tokens costs as much as a range

  const TextClass& text;
  const size_t text_class;
  const uint32_t from, base;       // the state before the text; one that needs the most counts
  std::vector<uint32_t> states;    // all that text may begin at, the base first
  size_t left;                     // ranges and nodes that it may come to
  std::vector<Enders> sets;        // the same, by counts; more than kMostSets are too many
  std::vector<Counted> tokens;     // that need less, each once
  std::vector<uint32_t> is_known;  // bits: tokens that were tried
  std::vector<std::pair<uint32_t, uint32_t>> last_bytes;  // by state: see last_byte_of
};

// Tokens with the same end: the states that it leads to, the first of them from the base.
struct LexemeWalk::SameEnd {
  Suffixes::Range range;
  uint32_t depth;    // bytes
  uint32_t shorter;  // the state that it leads to from the base without its first byte, or kNone
  std::vector<uint32_t> states;
};

uint32_t LexemeWalk::least_of(uint32_t state) const {
  return static_cast<uint32_t>(automaton_.states[state].least);
}

// The largest class of which any text leads on, and to no end of the call; null if there is none
// with more than `taken` tokens.
const TextClass* LexemeWalk::take_text_by_least(uint32_t state, size_t taken, TokenSet* set) {
  const TextClass* text = nullptr;
  for (size_t i = 0; i < trie_.classes().size(); ++i) {
    const TextClass& other = trie_.classes()[i];
    if (reach_.characters(i, state) < TextClass::kMaxCharacters || reach_.ends(i, state)) continue;
    if (other.all() > taken && (text == nullptr || other.all() > text->all())) text = &other;
  }
  if (text == nullptr) return nullptr;
  std::vector<uint32_t> after;
  if (!find_after(state, *text, &after)) return nullptr;
  const bool endless = std::all_of(after.begin(), after.end(), [this](uint32_t s) {
    return automaton_.states[s].most == kEndless;
  });
  if (after.empty() || !endless) return nullptr;
  const uint32_t base =
      *std::max_element(after.begin(), after.end(), [this, text](uint32_t a, uint32_t b) {
        if (least_of(a) != least_of(b)) return least_of(a) < least_of(b);
        return count_of(row_of(a).loops & text->kinds) < count_of(row_of(b).loops & text->kinds);
      });
  std::vector<uint32_t> states = {base};
  for (const uint32_t other : after) {
    if (other != base) states.push_back(other);
  }
  if (!has(states, state)) states.push_back(state);
  const auto text_class = static_cast<size_t>(text - trie_.classes().data());
  EnderSearch search = {*text, text_class, state, base, std::move(states), EnderSearch::kMost,
                        {},    {},         {},    {}};
  search.is_known.resize(words_);
  if (!find_enders(&search)) return nullptr;
  set->text = text;
  set->least_of_text = least_of(base) + 1;
  set->enders = std::move(search.sets);
  set->open.insert(set->open.end(), search.tokens.begin(), search.tokens.end());
  return text;
}

// The states after some text of the class; false if there are too many.
bool LexemeWalk::find_after(uint32_t from, const TextClass& text, std::vector<uint32_t>* states) {
  uint32_t state = from;
  for (size_t i = 0; states->size() <= TextStates::kMost; state = (*states)[i++]) {
    const Row& row = row_of(state);
    for (size_t byte_class = 0; byte_class < classes_.size(); ++byte_class) {
      uint32_t byte = classes_.first(byte_class);
      while (byte < classes_.last(byte_class) && !text.begins[byte]) ++byte;
      const uint32_t next = row.next[byte_class] & ~kCounts;
      if (byte >= 0x80 || !text.begins[byte] || row.next[byte_class] == kNone) continue;
      if (!has(*states, next)) states->push_back(next);
    }
    if ((text.kinds & kBeyondAscii) != 0) add_beyond_ascii(state, states);
    if (i == states->size()) return true;
  }
  return false;
}

// The states after a character beyond ASCII.
void LexemeWalk::add_beyond_ascii(uint32_t state, std::vector<uint32_t>* states) {
  struct Part {
    uint32_t state;
    const ByteSequence* bytes;
    size_t read;
  };
  if ((row_of(state).loops & kBeyondAscii) != 0) {
    if (!has(*states, state)) states->push_back(state);
    return;
  }
  std::vector<Part> open;
  open.reserve(beyond_ascii_.size());
  for (const ByteSequence& bytes : beyond_ascii_) open.push_back({state, &bytes, 0});
  while (!open.empty()) {
    const Part at = open.back();
    open.pop_back();
    if (at.read == at.bytes->size()) {
      if (!has(*states, at.state)) states->push_back(at.state);
      continue;
    }
    const BytePart& part = (*at.bytes)[at.read];
    for (const Edge& edge : automaton_.states[at.state].edges) {
      if (edge.low > part.high || edge.high < part.low) continue;
      open.push_back({edge.target, at.bytes, at.read + 1});
    }
  }
}

// A token that does not end at the base has been there, and what follows the last time never
// returns; or it never was. Returns false where that is too much to search.
bool LexemeWalk::find_enders(EnderSearch* search) {
  for (const uint32_t token : trie_.suffixes().left_out()) try_ender(token, search);
  std::vector<SameEnd> open = {{trie_.suffixes().all(), 0, kNone, search->states}};
  while (!open.empty()) {
    const SameEnd at = std::move(open.back());
    open.pop_back();
    if (at.depth == 0 || !take_enders(at, search)) add_longer_ends(at, search, &open);
    if (search->left == 0 || search->sets.size() > EnderSearch::kMostSets) return false;
  }
  return search->from == search->base || walk_to_base(search);
}

// Returns whether all tokens of the range are known.
bool LexemeWalk::take_enders(const SameEnd& at, EnderSearch* search) {
  const uint32_t state = at.states[0];
  const bool stays = reach_.stays(search->text_class, state);
  const uint32_t last_byte = last_byte_of(state, search);
  size_t bytes = 0;  // that lead to other states than the base
  for (const Edge& edge : automaton_.states[state].edges) {
    if (edge.target == search->base || edge.low > last_byte) continue;
    bytes += std::min<uint32_t>(edge.high, last_byte) - edge.low + size_t{1};
  }
  const bool is_few = at.range.last - at.range.first <= 2 * EnderSearch::kTries * bytes;
  const bool is_last = stays || is_few || at.depth == Suffixes::kSorted;
  const Suffixes::Range range = is_last ? at.range : trie_.suffixes().ending(at.range, at.depth);
  uint32_t least = 0;  // that is enough, whatever comes before
  for (const uint32_t other : at.states) least = std::max(least, least_of(other));
  const bool is_sure = is_last ? stays && at.states.size() == 1 : least == least_of(state);
  const bool is_base = least_of(state) >= least_of(search->base) && (is_sure || !is_last);
  if (range.empty() || is_base) return is_last;
  if (is_sure) {
    add_enders(range, least, search);
    return is_last;
  }
  search->left -= std::min<size_t>(search->left, (range.last - range.first) / EnderSearch::kTries);
  if (search->left == 0) return true;
  for (uint32_t i = range.first; i < range.last; ++i) {
    try_ender(trie_.suffixes().token(i), search);
  }
  return is_last;
}

// The last byte after which a state may lead to others than the base: what is not ASCII leads to
// it, mostly.
uint32_t LexemeWalk::last_byte_of(uint32_t state, EnderSearch* search) {
  for (const auto& [known, last] : search->last_bytes) {
    if (known == state) return last;
  }
  const bool leads = std::all_of(beyond_ascii_.begin(), beyond_ascii_.end(),
                                 [this, state, search](const ByteSequence& bytes) {
                                   return leads_back(state, bytes, 0, search->base);
                                 });
  search->last_bytes.push_back({state, leads ? 0x7Fu : 0xFFu});
  return search->last_bytes.back().second;
}

void LexemeWalk::add_longer_ends(const SameEnd& at, EnderSearch* search,
                                 std::vector<SameEnd>* open) {
  const uint32_t last_byte = last_byte_of(at.states[0], search);
  for (const Edge& edge : automaton_.states[at.states[0]].edges) {
    if (edge.target == search->base) continue;
    const uint32_t last = std::min<uint32_t>(edge.high, last_byte);
    for (uint32_t byte = edge.low; byte <= last; ++byte) {
      if (!search->text.bytes[byte] || byte == 0) continue;
      if (search->left == 0) return;
      --search->left;
      ++visited_;
      SameEnd longer = {trie_.suffixes().with(at.range, at.depth, static_cast<uint8_t>(byte)),
                        at.depth + 1,
                        kNone,
                        {}};
      if (longer.range.empty()) continue;
      const auto after = [this, byte](uint32_t state) {
        const uint32_t next = next_of(row_of(state), static_cast<uint8_t>(byte));
        return next == kNone ? kNone : next & ~kCounts;
      };
      if (at.depth == 0) longer.shorter = search->base;
      if (at.shorter != kNone) longer.shorter = after(at.shorter);
      if (longer.shorter == edge.target) continue;  // found as a shorter end
      for (const uint32_t state : at.states) {
        const uint32_t next = after(state);
        if (next != kNone && !has(longer.states, next)) longer.states.push_back(next);
      }
      open->push_back(std::move(longer));
    }
  }
}

// Tokens that need at most so many counts more than they have characters.
Enders* LexemeWalk::enders_of(uint32_t least, EnderSearch* search) {
  std::vector<Enders>& sets = search->sets;
  const auto known = std::find_if(sets.begin(), sets.end(),
                                  [least](const Enders& some) { return some.least == least; });
  if (known != sets.end()) return &*known;
  sets.push_back({least, {}, {}});
  return &sets.back();
}

void LexemeWalk::add_enders(const Suffixes::Range& range, uint32_t least, EnderSearch* search) {
  constexpr uint32_t kFew = 64;
  Enders* const enders = enders_of(least, search);
  if (range.last - range.first > kFew) {
    enders->bits.resize(words_);
    return trie_.suffixes().add_tokens(range, enders->bits.data());
  }
  for (uint32_t i = range.first; i < range.last; ++i) {
    enders->few.push_back(trie_.suffixes().token(i));
  }
}

// Reads a token of the class from its start.
void LexemeWalk::try_ender(uint32_t token, EnderSearch* search) {
  const std::vector<uint32_t>& all = search->text.up_to[TextClass::kMaxCharacters];
  if (has_bit(search->is_known.data(), token) || !has_bit(all.data(), token)) return;
  uint32_t state = search->from, counts = 0;
  for (const char byte : trie_.suffixes().piece(token)) {
    const uint32_t next = next_of(row_of(state), static_cast<uint8_t>(byte));
    if (next == kNone) return;
    state = next & ~kCounts;
    counts += next >= kCounts ? 1 : 0;
  }
  add_ender(token, counts, state, search);
}

void LexemeWalk::add_ender(uint32_t token, uint32_t counts, uint32_t state, EnderSearch* search) {
  if (has_bit(search->is_known.data(), token)) return;
  set_bit(search->is_known.data(), token);
  if (least_of(state) < least_of(search->base)) {
    search->tokens.push_back({token, counts + least_of(state)});
  }
}

// The tokens that never come to the base.
bool LexemeWalk::walk_to_base(EnderSearch* search) {
  struct Open {
    uint32_t node, state, counts;
  };
  const std::vector<uint32_t>& all = search->text.up_to[TextClass::kMaxCharacters];
  std::vector<Open> open = {{TokenTrie::kRoot, search->from, 0}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    const uint32_t end = trie_.end_of_children(at.node);
    for (uint32_t child = trie_.entries()[at.node].children; child < end; ++child) {
      const uint8_t byte = trie_.byte(child);
      const uint32_t next = next_of(row_of(at.state), byte), state = next & ~kCounts;
      if (!search->text.bytes[byte] || next == kNone || state == search->base) continue;
      if (--search->left == 0) return false;
      ++visited_;
      if (reach_.stays(search->text_class, state)) {
        std::vector<uint32_t>& bits = enders_of(least_of(state), search)->bits;
        bits.resize(words_);
        for (const Ending& e : trie_.endings_from(child)) set_bit(bits.data(), e.token());
        continue;
      }
      const uint32_t counts = at.counts + (next >= kCounts ? 1 : 0);
      for (const Ending& ending : trie_.endings_at(child)) {
        if (has_bit(all.data(), ending.token())) add_ender(ending.token(), counts, state, search);
      }
      open.push_back({child, state, counts});
    }
  }
  return search->sets.size() <= EnderSearch::kMostSets;
}

}  // namespace rushlight::llm::grammar
