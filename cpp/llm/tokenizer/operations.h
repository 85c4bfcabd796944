// The operations of which normalisers and pre-tokenizers are made, by their numbers in the table;
// in the order of src/rushlight/llm/tokenizer/operations.py.
#pragma once

#include <cstdint>

namespace rushlight::llm {

enum NormalizeKind : uint32_t {
  kReplace,        // text by other
  kReplaceRuns,    // of a (character) that are longer than one, by other
  kPrepend,        // text, to a text that is not empty
  kStrip,          // a: white space at the left, b: at the right
  kLowercase,      //
  kStripAccents,   // all marks
  kDecompose,      // a: by compatibility
  kCompose,        // a: by compatibility
  kBertClean,      // control characters, kinds of white space
  kBertChinese,    // spaces around Chinese characters
  kBertAccents,    // decomposed, without nonspacing marks
  kCharsmap,       // of each grapheme of a few bytes, or else of each character
  kSentencePiece,  // a: flags of SentencePiece's normaliser
  kNmt,            // control characters, kinds of white space, as nmt_nfkc has them
  kNormalizeKinds,
};

enum SplitKind : uint32_t {
  kSplitPattern,      // text: alternatives; what matches none stays together
  kSplitText,         // text, a: Behavior
  kSplitDigits,       // a: each by itself
  kSplitSpaces,       // at white space, which is dropped
  kSplitWords,        // \w+|[^\w\s]+
  kSplitPunctuation,  // a: Behavior
  kSplitBert,         // at white space, which is dropped, and at each punctuation character
  kMetaspace,         // text: what stands for a space, a: Prepend, b: split before each
  kAddSpace,          // a space is put before a text without one
  kSplitKinds,
};

enum class Behavior : uint32_t {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};
enum class Prepend : uint32_t { Never, First, Always };

// Flags of kSentencePiece.
constexpr uint32_t kCollapseSpaces = 1, kDummyPrefix = 2, kEscapeSpaces = 4, kSuffix = 8;

}  // namespace rushlight::llm
