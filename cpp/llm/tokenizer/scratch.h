// What encoding needs beside the table: memory that a thread keeps between texts, and the tokens of
// the words that it saw last.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/letters.h"

namespace rushlight::llm {

// A word of at most kLongest bytes as numbers, which two words of one size share only if they are
// equal.
struct ShortWord {
  static constexpr size_t kLongest = 24;

  ShortWord() = default;
  // Of a word of 1 to kLongest bytes. The parts overlap where that saves a loop.
  explicit ShortWord(StringView word) : size(static_cast<uint8_t>(word.size())) {
    const char* text = word.data();
    if (size >= 8) {
      std::memcpy(&parts[0], text, 8);
      std::memcpy(&parts[1], text + size - 8, 8);
      if (size > 16) std::memcpy(&parts[2], text + 8, 8);
    } else if (size >= 4) {
      std::memcpy(&parts[0], text, 4);
      std::memcpy(&parts[1], text + size - 4, 4);
    } else {
      parts[0] = static_cast<uint8_t>(text[0]);
      parts[1] = static_cast<uint8_t>(text[size / 2]);
      parts[2] = static_cast<uint8_t>(text[size - 1]);
    }
  }
  uint64_t hash(uint32_t owner) const {
    uint64_t mixed = (parts[0] ^ (uint64_t{owner} << 8 | size)) * 0xD6E8FEB86659FD93u;
    mixed = (mixed ^ mixed >> 32 ^ parts[1]) * 0xA0761D6478BD642Fu;
    mixed = (mixed ^ mixed >> 32 ^ parts[2]) * 0xE7037ED1A0B428DBu;
    return mixed ^ mixed >> 32;
  }

  uint64_t parts[3] = {};
  uint8_t size = 0;
};

// Short words and their tokens, the last one seen in each place. One table serves all tokenizers of
// a thread: a word is found only by the tokenizer that stored it.
class WordCache {
 public:
  static constexpr size_t kMostTokens = 8;

  // One line of the processor's cache.
  struct alignas(64) Entry {
    uint64_t parts[3];
    uint32_t owner = 0;  // the tokenizer; 0: nobody
    uint8_t size = 0;
    uint8_t tokens : 7;
    uint8_t came_back : 1;  // since another word last wanted the place
    uint16_t limit = 0;     // for the model
    int32_t token[kMostTokens];

    bool holds(const ShortWord& word, uint32_t tokenizer) const {
      return owner == tokenizer && size == word.size && parts[0] == word.parts[0] &&
             parts[1] == word.parts[1] && parts[2] == word.parts[2];
    }
    // With at most kMostTokens tokens.
    void store(const ShortWord& word, uint32_t tokenizer, const int32_t* first, size_t n) {
      std::memcpy(parts, word.parts, sizeof parts);
      owner = tokenizer;
      size = word.size;
      tokens = static_cast<uint8_t>(n & 0x7F);
      came_back = 0;
      if (n != 0) std::memcpy(token, first, n * sizeof(int32_t));
    }
  };

  // Where the word stands, or may be stored.
  Entry& at(const ShortWord& word, uint32_t tokenizer) {
    if (entries_.empty()) entries_.resize(kEntries);
    return entries_[word.hash(tokenizer) & (kEntries - 1)];
  }
  // Whether this was asked for the word before, and not for another one of the same place since.
  bool was_seen(const ShortWord& word, uint32_t tokenizer) {
    if (seen_.empty()) seen_.resize(kSeen);
    const uint64_t hash = word.hash(tokenizer);
    const auto mark = static_cast<uint16_t>(hash >> 48 | 1);
    uint16_t& seen = seen_[hash >> 16 & (kSeen - 1)];
    const bool was_seen = seen == mark;
    seen = mark;
    return was_seen;
  }

 private:
  static constexpr size_t kEntries = 16384, kSeen = 32768;

  std::vector<Entry> entries_;
  std::vector<uint16_t> seen_;
};

// Pairs of tokens that stay two tokens beside each other, the last one seen in each place; as
// WordCache, for all tokenizers of a thread.
class PairCache {
 public:
  bool holds(uint32_t tokenizer, int32_t left, int32_t right) const {
    if (entries_.empty()) return false;
    const Entry& entry = entries_[place(left, right)];
    return entry.owner == tokenizer && entry.left == left && entry.right == right;
  }
  void store(uint32_t tokenizer, int32_t left, int32_t right) {
    if (entries_.empty()) entries_.resize(kEntries);
    entries_[place(left, right)] = {tokenizer, left, right};
  }

 private:
  static constexpr size_t kEntries = 16384;

  struct Entry {
    uint32_t owner = 0;  // 0: nobody
    int32_t left = 0, right = 0;
  };

  static size_t place(int32_t left, int32_t right) {
    const uint64_t key = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    return static_cast<size_t>(key * 0x9E3779B97F4A7C15u >> 50);
  }

  std::vector<Entry> entries_;
};

// One symbol of a word that is being merged; of a long word, in a list.
struct Symbol {
  uint32_t token;
  uint32_t merged;  // what the merge with its right neighbour gives
};

struct LinkedSymbol {
  uint32_t token, previous, next;
};

struct Merge {
  uint32_t rank, left, left_token, right_token, merged;
};

struct Scratch {
  // What one text may leave behind in each buffer, in bytes.
  static constexpr size_t kMostKept = size_t{1} << 20;

  // Gives back the buffers that a huge text left larger than that.
  void shrink() {
    shrink(&symbols);
    shrink(&linked);
    shrink(&merges);
    shrink(&scores);
    shrink(&single_scores);
    shrink(&links);
    shrink(&seconds);
    shrink(&letters.codes);
    shrink(&letters.labels);
    shrink(&begins);
    shrink(&dead);
    shrink(&codes);
    for (std::string& text : normalized) shrink(&text);
    for (std::string& text : pieces) shrink(&text);
  }

  WordCache cache;
  PairCache pairs;
  std::vector<Symbol> symbols;
  std::vector<LinkedSymbol> linked;
  std::vector<Merge> merges;
  std::vector<double> scores;  // of the best paths
  std::vector<float> single_scores;
  std::vector<uint64_t> links;  // their last pieces
  std::vector<double> seconds;  // scores of the best paths but one
  Letters::Buffers letters;
  std::vector<uint32_t> begins;  // of tokens
  std::vector<uint64_t> dead;    // bits of positions where no tokens go on
  std::string normalized[2];
  std::vector<std::string> pieces;  // for operations of pre-tokenizers that change the text
  std::vector<uint32_t> codes;

 private:
  template <class Buffer>
  static void shrink(Buffer* buffer) {
    constexpr size_t kMost = kMostKept / sizeof(typename Buffer::value_type);
    if (buffer->capacity() > kMost) Buffer().swap(*buffer);
  }
};

// The calling thread's.
Scratch* thread_scratch();

}  // namespace rushlight::llm
