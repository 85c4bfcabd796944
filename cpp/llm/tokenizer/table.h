// The table of a tokenizer, as it stands in a program's named data "rushlight/tokenizer": written
// by src/rushlight/llm/tokenizer/table.py, described in docs/llm/tokenizer.md. It is checked once,
// when it is opened, and then used where it lies.
#pragma once

#include <cstdint>
#include <cstring>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight::llm {

constexpr uint32_t kTableVersion = 4;   // and those before it are read
constexpr size_t kAsciiJoints = 256;    // numbers of 64 bits, of 128 by 128 characters
constexpr uint32_t kNone = 0xFFFFFFFF;  // no token, no value
constexpr uint32_t kLowBlock = 0x2581;  // the character that stands for a space

// SentencePiece adds the scores of unigram models in single precision, tokenizers in double.
enum class Model : uint32_t { Bpe, Unigram32, Unigram64, WordPiece };

// What is done with the text of the first token when tokens become text again.
enum class StartRule : uint32_t {
  None,
  StripOnce,   // a leading space of the first token
  StripEach,   // a leading space of each token until there is text
  DropSpaces,  // all spaces of the first token
  WordPiece,   // its leading space, or the mark of a continuing piece is put before it
};

// Bits of Settings::flags.
constexpr uint32_t kByteLevel = 1;          // symbols are bytes, not characters
constexpr uint32_t kByteFallback = 2;       // unknown characters become the tokens of their bytes
constexpr uint32_t kFuseUnknown = 4;        // neighbouring unknown characters are one token
constexpr uint32_t kIgnoreMerges = 8;       // a word of the vocabulary is taken as it is
constexpr uint32_t kSpacesBeginWords = 16;  // version < 3: no merge joins a word with a U+2581
constexpr uint32_t kMergeUnknown =
    32;  // characters of no token may be merged, as SentencePiece does

constexpr uint32_t kSpacedSpecial = 64;  // a space stands before a special token in a text

// Bits of a token's kind.
constexpr uint8_t kSpecialToken = 1;
constexpr uint8_t kByteToken = 2;
constexpr uint8_t kContinuingToken = 4;  // of WordPiece
constexpr uint8_t kVerbatimToken = 8;    // keeps its spaces at the start of a text

struct Settings {
  Model model;
  uint32_t vocabulary;
  uint32_t unknown;  // token, or kNone
  uint32_t flags;
  StartRule start_rule;
  uint32_t pair_probes;  // places of the table of pairs that a search looks at
  uint32_t word_probes;
  uint32_t longest_word;   // characters of a word that WordPiece looks up
  uint32_t longest_piece;  // characters of a piece of a PieceTrie
  uint32_t reserved[7];
};

struct Pair {
  uint32_t left, right, rank, token;  // left is kNone: nothing stands here
};

// One operation of the normaliser or the pre-tokenizer; what its numbers mean is beside its kind.
struct Operation {
  uint32_t kind, a, b, c;
  uint32_t text, text_size, other, other_size;  // in the section of texts
};

// A token that is found in the text before the model sees it.
struct AddedToken {
  uint32_t token, flags, text, text_size;
};
constexpr uint32_t kLeftStrip = 1, kRightStrip = 2, kSingleWord = 4, kSpecialAdded = 8;

// A trie whose nodes stand in breadth-first order, so that the children of node n are
// first[n] .. first[n + 1], sorted by label.
struct Trie {
  Span<const uint32_t> first, values;
  Span<const uint8_t> labels;
  uint32_t starts[256] = {};    // the root's children
  uint32_t only_start = kNone;  // the byte with which all texts begin, if there is one

  bool empty() const { return values.size() <= 1; }
  // The child of `node` for `byte`, or 0.
  uint32_t child(uint32_t node, uint8_t byte) const {
    const uint32_t begin = first[node], end = first[node + 1];
    if (end - begin > 4) {
      const void* label = std::memchr(labels.data() + begin, byte, end - begin);
      if (label == nullptr) return 0;
      return static_cast<uint32_t>(static_cast<const uint8_t*>(label) - labels.data());
    }
    for (uint32_t i = begin; i < end; ++i) {
      if (labels[i] == byte) return i;
    }
    return 0;
  }
};

// A place of a PieceTrie: a node of the trie, or nothing.
struct PieceNode {
  uint32_t base;
  uint32_t parent;    // kNone: of the root, and where no node stands
  uint32_t children;  // bit n: there may be a child whose label is n modulo 32
  float score;        // of the piece that ends here, or minus infinity
};

// The pieces of a unigram model as a trie of characters. It is a double array: a node's child for
// a label stands at base ^ label, if the place there has the node for its parent. The root is
// node 0, and nodes that are used more often stand closer to it.
struct PieceTrie {
  Span<const PieceNode> nodes;
  Span<const uint32_t> tokens;       // of the pieces that end at each node, or kNone
  Span<const uint16_t> label_pages;  // for 256 characters each, their page of `labels`
  Span<const uint32_t> labels;       // 0: the character is in no piece

  bool empty() const { return nodes.empty(); }
  uint32_t label(uint32_t code) const {
    if (label_pages.empty() || code > 0x10FFFF) return 0;
    return labels[size_t{label_pages[code >> 8]} << 8 | (code & 255)];
  }
  // The child of `node` for a label, or 0.
  uint32_t child(uint32_t node, uint32_t label) const {
    // Most places where no child stands are far away: the bits spare the look.
    if ((nodes[node].children >> (label & 31) & 1) == 0) return 0;
    const uint32_t child = nodes[node].base ^ label;
    return child < nodes.size() && nodes[child].parent == node ? child : 0;
  }
};

// The tokens of BPE by the bytes of the texts that become them. It is a double array: the child of
// a unit for a byte stands at base ^ byte, if the unit there has this label. No two units that have
// children have one base. The root is unit 0.
struct TokenTrie {
  struct Match {
    uint32_t token = kNone;
    size_t end = 0, steps = 0;
  };

  Span<const uint32_t> units;   // label, bit 8: a token ends here, from bit 9 on the base
  Span<const uint32_t> tokens;  // of each unit, or kNone

  bool empty() const { return units.empty(); }
  static uint32_t base(uint32_t unit) { return unit >> 9; }
  // The longest token that the text from `begin` on begins with, and that ends at `most` or before.
  Match longest(const uint8_t* text, size_t begin, size_t most) const {
    uint32_t unit = units[0], place = 0, last = 0;
    size_t i = begin, end = begin;
    while (i < most) {
      const uint32_t byte = text[i];
      place = base(unit) ^ byte;
      unit = units[place];
      if ((unit & 0xFF) != byte) break;
      ++i;
      const bool ends = (unit >> 8 & 1) != 0;
      last = ends ? place : last;
      end = ends ? i : end;
    }
    return {last != 0 ? tokens[last] : kNone, end, i - begin};
  }
};

// The two tokens whose merge makes a token of its own text.
struct Halves {
  uint32_t left, right;
  uint32_t order;  // by the merge's rank; 0: it is a symbol, kNone: only a word becomes this token
};

// Bits of a character's charsmap class.
constexpr uint8_t kReplacedAlone = 1;   // is replaced, begins a text that is kept, or is a space
constexpr uint8_t kBeginsReplaced = 2;  // longer texts that are replaced begin with it
constexpr uint8_t kSecondReplaced = 4;  // is the second character of such a text
constexpr uint8_t kKeptSpace = 8;       // is the space, and in no text that is replaced or kept

struct Table {
  Settings settings = {};
  Span<const uint32_t> piece_ends;  // of each token, in `pieces`
  Span<const uint8_t> pieces;
  Span<const uint8_t> kinds;
  Span<const uint32_t> bytes;  // the token of each byte
  Span<const Pair> pairs;
  Span<const uint64_t> pair_bits;        // by their hash, whether there may be such a pair
  Span<const uint32_t> words;            // tokens, by the hash of their bytes
  Span<const uint16_t> character_pages;  // for 256 characters each, their page of `characters`
  Span<const uint32_t> characters;       // tokens
  Span<const uint64_t> joints;           // bits of characters that a merge may join
  TokenTrie token_trie;                  // of BPE since version 4, but for few tokenizers
  Span<const Halves> halves;             // of each token, if there is a token_trie
  Trie model;                            // values: tokens
  PieceTrie piece_trie;                  // in its place, of unigram models since version 2
  bool spaces_begin_pieces = false;      // of the piece_trie; U+2581 stands for them
  uint32_t first_labels = 0;             // labels from 1 to it are the root's children, no others
  Trie raw_added, added;                 // values: indices of added tokens
  Trie kept;                             // texts that SentencePiece's normaliser does not change
  Span<const double> scores;             // of each token, and of an unknown character
  double greatest_score = 0;             // in magnitude
  Span<const Operation> normalizer, splitter;
  Span<const uint8_t> texts;
  Span<const AddedToken> added_tokens;
  Span<const uint32_t> before, after;  // the tokens that surround a text
  Span<const uint32_t> charsmap_units;
  Span<const uint8_t> charsmap_texts;
  Span<const uint16_t> charsmap_pages;  // for 256 characters each, their page of charsmap_classes
  Span<const uint8_t> charsmap_classes;

  static Result<Table> open(Span<const uint8_t> data, Message* message);

  StringView piece(uint32_t token) const {
    const uint32_t begin = token == 0 ? 0 : piece_ends[token - 1];
    return {reinterpret_cast<const char*>(pieces.data()) + begin, piece_ends[token] - begin};
  }
  StringView text(uint32_t offset, uint32_t size) const {
    return {reinterpret_cast<const char*>(texts.data()) + offset, size};
  }
  bool has(uint32_t flag) const { return (settings.flags & flag) != 0; }

  // The token of a character, or kNone.
  uint32_t character(uint32_t code) const {
    if (character_pages.empty()) return kNone;
    const uint32_t known = code <= 0x10FFFF ? code : 0;
    return characters[size_t{character_pages[known >> 8]} << 8 | (known & 255)];
  }
  // What SentencePiece's map of characters may do with a character. Version 1 does not tell.
  uint8_t charsmap_class(uint32_t code) const {
    if (charsmap_pages.empty() || code > 0x10FFFF) return kReplacedAlone;
    return charsmap_classes[size_t{charsmap_pages[code >> 8]} << 8 | (code & 255)];
  }
  // Whether a merge joins a text that ends with the one character with a text that begins with the
  // other. Tables of before version 3 know it of spaces. Of BPE, and not over bytes.
  bool may_join(uint32_t first, uint32_t second) const {
    if (joints.empty()) {
      return !has(kSpacesBeginWords) || second != kLowBlock || first == kLowBlock;
    }
    if ((first | second) < 0x80) return (joints[2 * first + second / 64] >> (second % 64) & 1) != 0;
    const uint64_t key = (uint64_t{first} << 21 | second) * 0x9E3779B97F4A7C15u;
    const uint64_t bits = uint64_t{joints.size() - kAsciiJoints} * 64;
    const uint64_t bit = ((key >> 32) * bits) >> 32;
    return (joints[kAsciiJoints + static_cast<size_t>(bit / 64)] >> (bit % 64) & 1) != 0;
  }
  // The merge of two tokens, or null.
  const Pair* pair(uint32_t left, uint32_t right) const {
    const uint64_t key = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u;
    // Most pairs are none, and the bits are so few that the processor's caches hold them.
    if (!pair_bits.empty()) {
      const uint64_t bit = ((key >> 32) * (uint64_t{pair_bits.size()} * 64)) >> 32;
      if ((pair_bits[static_cast<size_t>(bit / 64)] >> (bit % 64) & 1) == 0) return nullptr;
    }
    const size_t mask = pairs.size() - 1;
    size_t slot = static_cast<size_t>(key >> 32) & mask;
    for (uint32_t i = 0; i < settings.pair_probes; ++i) {
      const Pair& pair = pairs[slot];
      if (pair.left == left && pair.right == right) return &pair;
      if (pair.left == kNone) return nullptr;
      slot = (slot + 1) & mask;
    }
    return nullptr;
  }
  // The token whose piece is `text`, or kNone.
  uint32_t word(StringView text) const;
};

}  // namespace rushlight::llm
