// The tokens that go on from a state, as MaskCache keeps them.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

inline void set_bit(uint32_t* bits, uint32_t token) { bits[token / 32] |= 1u << (token % 32); }

struct Counted {
  uint32_t what;    // a token, or a node of the trees
  uint32_t counts;  // that a call adds up to there
};

struct TokenSet {
  bool is_counted = false;  // counts matter: the bounds of the call are near
  // Tokens, where they are not counted: their bits, or a list of few.
  std::vector<uint32_t> bits, few;
  // Tokens, where they are counted: those that stay in the call, with the counts they need to its
  // end, the fewest first, and their bits if they are many; and those that end it.
  std::vector<Counted> open, closed;
  std::vector<Counted> exits;  // nodes of the trees after which the call has ended
  // Where counted: the class of which all tokens stay in the call as well, or null, and the counts
  // that are needed after them.
  const TextClass* text = nullptr;
  uint32_t least_after_text = 0;

  size_t bytes() const {
    return sizeof(TokenSet) + (bits.capacity() + few.capacity()) * sizeof(uint32_t) +
           (open.capacity() + closed.capacity() + exits.capacity()) * sizeof(Counted);
  }
};

// Gathers the tokens of a set that are not counted.
class TokenGatherer {
 public:
  explicit TokenGatherer(size_t words) : tokens_(words) {}  // of all bits

  void take(uint32_t token, TokenSet* set) {
    if (size_ == tokens_.size()) add_bits(set);
    tokens_[size_++] = token;
  }
  void take(Span<const Ending> endings, TokenSet* set) {
    for (const Ending& ending : endings) take(ending.token(), set);
  }
  // Adds them to the set: a list, where they are few and it has no bits.
  void finish(TokenSet* set) {
    if (!set->bits.empty()) return add_bits(set);
    set->few.assign(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(size_));
    size_ = 0;
  }

 private:
  void add_bits(TokenSet* set) {
    set->bits.resize(tokens_.size());
    for (size_t i = 0; i < size_; ++i) set_bit(set->bits.data(), tokens_[i]);
    size_ = 0;
  }

  std::vector<uint32_t> tokens_;
  size_t size_ = 0;
};

}  // namespace rushlight::llm::grammar
