// What encoding needs beside the table: memory that a thread keeps between texts, and the tokens of
// the words that it saw last.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// Short words and their tokens, the last one seen in each place. One table serves all tokenizers of
// a thread: a word is found only by the tokenizer that stored it.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 22, kMostTokens = 8;

  struct Entry {
    uint64_t key = 0;  // 0: empty
    uint8_t size = 0, tokens = 0;
    char text[kLongestWord];
    int32_t token[kMostTokens];
  };

  // Of a word of 1 to kLongestWord bytes.
  static uint64_t key(uint64_t owner, StringView word) {
    const char* text = word.data();
    const size_t size = word.size();
    uint64_t a = 0, b = 0, c = 0;
    if (size >= 8) {
      std::memcpy(&a, text, 8);
      std::memcpy(&b, text + size - 8, 8);
      if (size > 16) std::memcpy(&c, text + 8, 8);
    } else if (size >= 4) {
      std::memcpy(&a, text, 4);
      std::memcpy(&b, text + size - 4, 4);
    } else {
      a = static_cast<uint8_t>(text[0]);
      b = static_cast<uint8_t>(text[size / 2]);
      c = static_cast<uint8_t>(text[size - 1]);
    }
    uint64_t mixed = (a ^ owner * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    mixed = (mixed ^ mixed >> 32 ^ b) * 0xA0761D6478BD642Fu;
    mixed = (mixed ^ mixed >> 32 ^ c ^ size << 56) * 0xE7037ED1A0B428DBu;
    return (mixed ^ mixed >> 32) | 1;
  }

  // Where the word of this key stands, or may be stored.
  Entry& at(uint64_t key) {
    if (entries_.empty()) entries_.resize(kEntries);
    return entries_[key >> 8 & (kEntries - 1)];
  }
  static bool holds(const Entry& entry, uint64_t key, StringView word) {
    return entry.key == key && entry.size == word.size() &&
           std::memcmp(entry.text, word.data(), word.size()) == 0;
  }
  static void store(Entry& entry, uint64_t key, StringView word, const int32_t* tokens, size_t n) {
    if (n > kMostTokens) return;
    entry.key = key;
    entry.size = static_cast<uint8_t>(word.size());
    entry.tokens = static_cast<uint8_t>(n);
    std::memcpy(entry.text, word.data(), word.size());
    if (n != 0) std::memcpy(entry.token, tokens, n * sizeof(int32_t));
  }

 private:
  static constexpr size_t kEntries = 8192;

  std::vector<Entry> entries_;
};

// One symbol of a word that is being merged, in a list without gaps or, for long words, linked.
struct Symbol {
  uint32_t token;
  uint32_t rank;    // of the merge with its right neighbour, or kNone
  uint32_t merged;  // what that merge gives
};

struct LinkedSymbol {
  uint32_t token, previous, next;
};

struct Merge {
  uint32_t rank, left, left_token, right_token, merged;
};

struct BestPath {
  double score;
  uint32_t begin, token;  // begin is kNone: no path ends here
};

struct Scratch {
  // What one text may leave behind in each buffer, in bytes.
  static constexpr size_t kMostKept = size_t{1} << 20;

  // Gives back the buffers that a huge text left larger than that.
  void shrink() {
    shrink(&symbols);
    shrink(&linked);
    shrink(&merges);
    shrink(&paths);
    shrink(&codes);
    for (std::string& text : normalized) shrink(&text);
    for (std::string& text : pieces) shrink(&text);
  }

  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<LinkedSymbol> linked;
  std::vector<Merge> merges;
  std::vector<BestPath> paths;
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
Scratch& thread_scratch();

}  // namespace rushlight::llm
