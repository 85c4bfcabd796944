// The tokens that go on from a state, as MaskCache keeps them.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/grammar/bits.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm::grammar {

struct Counted {
  uint32_t token;
  uint32_t counts;  // that a call adds up to there
};

// A node of the trees after which a call has ended.
struct Exit {
  uint32_t node;
  uint32_t counts;          // that the call adds up to there
  uint64_t lengths;         // of text of a class before the node: bits; others are not meant
  bool excludes;            // nor are tokens that begin with a byte of `excluded`
  bool leaves_out = false;  // nor those of `left_out`
};
constexpr uint64_t kAnyLength = UINT64_MAX;

// Tokens that need at most `least` counts more than they have characters, to the end of the call:
// their bits, or none, and a list of others.
struct Enders {
  uint32_t least;
  std::vector<uint32_t> bits, few;
};

struct TokenSet {
  bool is_counted = false;  // counts matter: the bounds of the call are near
  // Tokens, where they are not counted: their bits, or a list of few.
  std::vector<uint32_t> bits, few;
  // Tokens, where they are counted: those that stay in the call, with the counts they need to its
  // end, the fewest first, and their bits if they are many; and those that end it.
  std::vector<Counted> open, closed;
  std::vector<Exit> exits;
  std::bitset<256> excluded;
  std::shared_ptr<const std::vector<uint32_t>> left_out;  // bits; null if there are none
  // Where counted: the class of which all tokens stay in the call as well, or null, and the counts
  // that those of one character need to its end; only tokens of `begin`, unless that is empty.
  const TextClass* text = nullptr;
  uint32_t least_of_text = 0;
  std::vector<uint32_t> begin;
  // Tokens of `text` that need less, by how much.
  std::vector<Enders> enders;

  size_t bytes() const {
    size_t of_enders = 0;
    for (const Enders& some : enders) {
      of_enders += sizeof(Enders) + (some.bits.capacity() + some.few.capacity()) * sizeof(uint32_t);
    }
    return sizeof(TokenSet) + of_enders +
           (bits.capacity() + few.capacity() + begin.capacity()) * sizeof(uint32_t) +
           (open.capacity() + closed.capacity()) * sizeof(Counted) +
           exits.capacity() * sizeof(Exit) +
           (left_out != nullptr ? left_out->capacity() * sizeof(uint32_t) : 0);
  }
};

// The fewest first; in linear time, except for tokens that need more counts than they have bytes.
void sort_by_counts(size_t longest, std::vector<Counted>* tokens);

// Gathers the tokens of a set that are not counted.
class TokenGatherer {
 public:
  explicit TokenGatherer(size_t words) : tokens_(words) {}  // of all bits

  size_t words() const { return tokens_.size(); }
  void take(uint32_t token, TokenSet* set) {
    if (size_ == tokens_.size()) add_bits(set);
    tokens_[size_++] = token;
  }
  // Those of `lengths` of text of a class before.
  void take(Span<const Ending> endings, uint64_t lengths, TokenSet* set) {
    if (lengths == kAnyLength && endings.size() > kMany) {
      add_bits(set);
      for (const Ending& ending : endings) set_bit(set->bits.data(), ending.token());
      return;
    }
    for (const Ending& ending : endings) {
      if ((lengths >> ending.before() & 1) != 0) take(ending.token(), set);
    }
  }
  // Those below a node.
  void take_below(const TokenTrie& trie, uint32_t node, uint64_t lengths, TokenSet* set) {
    const Span<const Ending> endings = trie.endings_from(node);
    const uint32_t* bits = endings.size() < TokenTrie::kVeryMany ? nullptr : trie.bits_from(node);
    if (bits == nullptr || lengths != kAnyLength) return take(endings, lengths, set);
    add_bits(set);
    grammar::add_bits(bits, set->bits.size(), set->bits.data());
  }
  // Adds them to the bits of the set.
  void flush(TokenSet* set) { add_bits(set); }
  // Adds them to the set: a list, where they are few and it has no bits.
  void finish(TokenSet* set) {
    if (!set->bits.empty()) return add_bits(set);
    set->few.assign(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(size_));
    size_ = 0;
  }

 private:
  static constexpr size_t kMany = 128;

  void add_bits(TokenSet* set) {
    set->bits.resize(tokens_.size());
    for (size_t i = 0; i < size_; ++i) set_bit(set->bits.data(), tokens_[i]);
    size_ = 0;
  }

  std::vector<uint32_t> tokens_;
  size_t size_ = 0;
};

}  // namespace rushlight::llm::grammar
