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

  // Adds tokens that are not counted. `words`: of all bits.
  void add(Span<const Ending> endings, size_t words) {
    if (bits.empty() && few.size() + endings.size() > words) {
      bits.resize(words);
      for (const uint32_t token : few) set_bit(bits.data(), token);
      few.clear();
    }
    for (const Ending& ending : endings) {
      if (bits.empty()) {
        few.push_back(ending.token());
      } else {
        set_bit(bits.data(), ending.token());
      }
    }
  }
  size_t bytes() const {
    return sizeof(TokenSet) + (bits.capacity() + few.capacity()) * sizeof(uint32_t) +
           (open.capacity() + closed.capacity() + exits.capacity()) * sizeof(Counted);
  }
};

}  // namespace rushlight::llm::grammar
