#include "rushlight/llm/tokenizer/table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rushlight/llm/tokenizer/operations.h"
#include "rushlight/llm/tokenizer/splitter/pattern.h"

namespace rushlight::llm {
namespace {

constexpr char kMagic[4] = {'R', 'L', 'T', 'K'};
constexpr uint32_t kMostSections = 64, kMostProbes = 256, kMostOperations = 64;
constexpr uint32_t kLongestPiece = 1 << 16, kMostPairBits = 1 << 24;

struct Header {
  char magic[4];
  uint32_t version, sections, reserved;
};

struct Section {
  uint32_t kind, reserved;
  uint64_t offset, size;
};

// In the order of the kinds in src/rushlight/llm/tokenizer/table.py.
enum SectionKind : uint32_t {
  kSettings,
  kPieceEnds,
  kPieces,
  kKinds,
  kBytes,
  kPairs,
  kWords,
  kCharacterPages,
  kCharacters,
  kModelFirst,
  kModelLabels,
  kModelValues,
  kRawAddedFirst,
  kRawAddedLabels,
  kRawAddedValues,
  kAddedFirst,
  kAddedLabels,
  kAddedValues,
  kScores,
  kNormalizer,
  kSplitter,
  kTexts,
  kAddedTokens,
  kBefore,
  kAfter,
  kCharsmapUnits,
  kCharsmapTexts,
  kKeptFirst,
  kKeptLabels,
  kKeptValues,
  kPieceNodes,
  kPieceTokens,
  kLabelPages,
  kLabels,
  kCharsmapPages,
  kCharsmapClasses,
  kPairBits,
  kByteJoins,       // of version 3, and not used any more
  kCharacterRanks,  // nor is this
  kJoints,
  kTokenUnits,
  kUnitTokens,
  kHalves,
  kSectionKinds,
};

class Reader {
 public:
  Reader(Span<const uint8_t> data, Message* message) : data_(data), message_(message) {}

  Status read_sections();
  Status read(Table* table);
  Status check(Table* table);

 private:
  template <class T>
  Status get(SectionKind kind, Span<const T>* out) {
    const Section& section = sections_[kind];
    if (section.size % sizeof(T) != 0) return fault("the size of a section", kind);
    const uint8_t* from = data_.data() + section.offset;
    const size_t n = static_cast<size_t>(section.size) / sizeof(T);
    if (n != 0) *out = Span<const T>(reinterpret_cast<const T*>(from), n);
    return {};
  }
  Status fault(const char* what, uint32_t where) {
    return message_->fail(
        Code::InvalidProgram,
        "the tokenizer's table is damaged: %s is wrong (%u); export the model again", what, where);
  }
  Status check_tokens(Span<const uint32_t> tokens, bool may_be_none, const char* what);
  Status check_trie(Trie* trie, size_t values, const char* what);
  Status check_piece_trie(Table* checked);
  Status check_pages(Span<const uint16_t> pages, size_t characters);
  Status check_operations(const Table& table, Span<const Operation> operations, bool splits);
  Status check_token_trie(const Table& table);
  Status check_bpe(const Table& table);
  Status check_model(const Table& table);
  Status check_pieces(const Table& table);
  Status check_charsmap(const Table& table);

  Span<const uint8_t> data_;
  Message* message_;
  Section sections_[kSectionKinds] = {};
  uint32_t vocabulary_ = 0;
};

Status Reader::read_sections() {
  Header header;
  if (data_.size() < sizeof(Header)) return fault("its size", static_cast<uint32_t>(data_.size()));
  if (reinterpret_cast<uintptr_t>(data_.data()) % 8 != 0) {
    return message_->fail(Code::InvalidArgument,
                          "the tokenizer's table must begin at a multiple of 8 bytes");
  }
  const uint16_t one = 1;
  if (*reinterpret_cast<const uint8_t*>(&one) != 1) {
    return message_->fail(Code::NotSupported, "tokenizers need a little-endian processor");
  }
  std::memcpy(&header, data_.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return message_->fail(Code::InvalidProgram, "these bytes are not the table of a tokenizer");
  }
  if (header.version == 0 || header.version > kTableVersion) {
    return message_->fail(
        Code::InvalidProgram,
        "the tokenizer's table has version %u, and this runtime reads versions 1 to %u; "
        "export the model again, or use a later runtime",
        header.version, kTableVersion);
  }
  if (header.sections > kMostSections ||
      data_.size() < sizeof(Header) + header.sections * sizeof(Section)) {
    return fault("the number of sections", header.sections);
  }
  for (uint32_t i = 0; i < header.sections; ++i) {
    Section section;
    std::memcpy(&section, data_.data() + sizeof(Header) + i * sizeof(Section), sizeof section);
    if (section.kind >= kSectionKinds) return fault("the kind of a section", section.kind);
    if (section.offset % 8 != 0 || section.offset > data_.size() ||
        section.size > data_.size() - section.offset) {
      return fault("the place of a section", section.kind);
    }
    sections_[section.kind] = section;
  }
  return {};
}

Status Reader::read(Table* table) {
  Span<const Settings> settings;
  RL_TRY(get(kSettings, &settings));
  if (settings.size() != 1) return fault("the number of settings", kSettings);
  table->settings = settings[0];
  RL_TRY(get(kPieceEnds, &table->piece_ends));
  RL_TRY(get(kPieces, &table->pieces));
  RL_TRY(get(kKinds, &table->kinds));
  RL_TRY(get(kBytes, &table->bytes));
  RL_TRY(get(kPairs, &table->pairs));
  RL_TRY(get(kPairBits, &table->pair_bits));
  RL_TRY(get(kJoints, &table->joints));
  RL_TRY(get(kTokenUnits, &table->token_trie.units));
  RL_TRY(get(kUnitTokens, &table->token_trie.tokens));
  RL_TRY(get(kHalves, &table->halves));
  RL_TRY(get(kWords, &table->words));
  RL_TRY(get(kCharacterPages, &table->character_pages));
  RL_TRY(get(kCharacters, &table->characters));
  RL_TRY(get(kModelFirst, &table->model.first));
  RL_TRY(get(kModelLabels, &table->model.labels));
  RL_TRY(get(kModelValues, &table->model.values));
  RL_TRY(get(kRawAddedFirst, &table->raw_added.first));
  RL_TRY(get(kRawAddedLabels, &table->raw_added.labels));
  RL_TRY(get(kRawAddedValues, &table->raw_added.values));
  RL_TRY(get(kAddedFirst, &table->added.first));
  RL_TRY(get(kAddedLabels, &table->added.labels));
  RL_TRY(get(kAddedValues, &table->added.values));
  RL_TRY(get(kKeptFirst, &table->kept.first));
  RL_TRY(get(kKeptLabels, &table->kept.labels));
  RL_TRY(get(kKeptValues, &table->kept.values));
  RL_TRY(get(kScores, &table->scores));
  RL_TRY(get(kNormalizer, &table->normalizer));
  RL_TRY(get(kSplitter, &table->splitter));
  RL_TRY(get(kTexts, &table->texts));
  RL_TRY(get(kAddedTokens, &table->added_tokens));
  RL_TRY(get(kBefore, &table->before));
  RL_TRY(get(kAfter, &table->after));
  RL_TRY(get(kPieceNodes, &table->piece_trie.nodes));
  RL_TRY(get(kPieceTokens, &table->piece_trie.tokens));
  RL_TRY(get(kLabelPages, &table->piece_trie.label_pages));
  RL_TRY(get(kLabels, &table->piece_trie.labels));
  RL_TRY(get(kCharsmapPages, &table->charsmap_pages));
  RL_TRY(get(kCharsmapClasses, &table->charsmap_classes));
  RL_TRY(get(kCharsmapUnits, &table->charsmap_units));
  return get(kCharsmapTexts, &table->charsmap_texts);
}

Status Reader::check_tokens(Span<const uint32_t> tokens, bool may_be_none, const char* what) {
  for (const uint32_t token : tokens) {
    if (token >= vocabulary_ && !(may_be_none && token == kNone)) return fault(what, token);
  }
  return {};
}

// Children stand after their parent, so that a walk ends.
Status Reader::check_trie(Trie* checked, size_t values, const char* what) {
  const Trie& trie = *checked;
  const size_t nodes = trie.values.size();
  if (nodes == 0) {
    return trie.first.empty() && trie.labels.empty() ? Status() : fault(what, 0);
  }
  if (trie.first.size() != nodes + 1 || trie.labels.size() != nodes || nodes >= kNone) {
    return fault(what, static_cast<uint32_t>(nodes));
  }
  if (trie.first[0] != 1 || trie.first[nodes] != nodes) return fault(what, trie.first[0]);
  for (size_t i = 0; i < nodes; ++i) {
    if (trie.first[i] <= i || trie.first[i] > trie.first[i + 1]) {
      return fault(what, static_cast<uint32_t>(i));
    }
    if (trie.values[i] >= values && trie.values[i] != kNone) return fault(what, trie.values[i]);
  }
  for (uint32_t child = trie.first[0]; child < trie.first[1]; ++child) {
    checked->starts[trie.labels[child]] = child;
  }
  if (trie.first[1] - trie.first[0] == 1) checked->only_start = trie.labels[trie.first[0]];
  return {};
}

// Whether no piece has a U+2581 after any other character.
bool begin_with_spaces(const PieceTrie& trie) {
  const uint32_t space = trie.label(kLowBlock);
  const size_t size = trie.nodes.size();
  const auto is_space = [&](uint32_t node) {
    const uint32_t parent = trie.nodes[node].parent;
    return parent < size && (trie.nodes[parent].base ^ node) == space;
  };
  for (uint32_t node = 0; node < size; ++node) {
    const uint32_t parent = trie.nodes[node].parent;
    if (parent != 0 && is_space(node) && !is_space(parent)) return false;
  }
  return space != 0;
}

// The greatest label of the root's children, which are the nodes of these numbers; 0: they are
// others.
uint32_t first_labels(const PieceTrie& trie) {
  uint32_t count = 0, greatest = 0;
  for (uint32_t node = 0; node < trie.nodes.size(); ++node) {
    if (trie.nodes[node].parent != 0) continue;
    ++count;
    greatest = node;
  }
  return !trie.empty() && trie.nodes[0].base == 0 && count == greatest ? greatest : 0;
}

// Places are checked where they are read. No walk is longer than the longest piece.
Status Reader::check_piece_trie(Table* checked) {
  const Table& table = *checked;
  const PieceTrie& trie = table.piece_trie;
  if (trie.nodes.size() != trie.tokens.size() || trie.nodes.size() >= kNone) {
    return fault("the number of pieces", static_cast<uint32_t>(trie.tokens.size()));
  }
  if (table.settings.longest_piece > kLongestPiece) {
    return fault("the longest piece", table.settings.longest_piece);
  }
  RL_TRY(check_tokens(trie.tokens, true, "the token of a piece"));
  RL_TRY(check_pages(trie.label_pages, trie.labels.size()));
  checked->spaces_begin_pieces = !trie.empty() && begin_with_spaces(trie);
  checked->first_labels = first_labels(trie);
  return {};
}

// Each page has its 256 characters.
Status Reader::check_pages(Span<const uint16_t> pages, size_t characters) {
  if (!pages.empty() && pages.size() != 0x1100) {
    return fault("the pages of characters", static_cast<uint32_t>(pages.size()));
  }
  for (const uint16_t page : pages) {
    if (size_t{page} * 256 + 256 > characters) return fault("a page", page);
  }
  return {};
}

Status Reader::check_operations(const Table& table, Span<const Operation> operations, bool splits) {
  if (operations.size() > kMostOperations) {
    return fault("the number of operations", static_cast<uint32_t>(operations.size()));
  }
  const size_t size = table.texts.size();
  for (const Operation& operation : operations) {
    if (operation.text > size || operation.text_size > size - operation.text ||
        operation.other > size || operation.other_size > size - operation.other) {
      return fault("the text of an operation", operation.kind);
    }
    if (operation.kind >= (splits ? uint32_t{kSplitKinds} : uint32_t{kNormalizeKinds})) {
      return fault("the kind of an operation", operation.kind);
    }
    const StringView text = table.text(operation.text, operation.text_size);
    if (splits && operation.kind == kSplitPattern) {
      for (size_t i = 0; i < text.size(); ++i) {
        const auto alternative = static_cast<uint8_t>(text.data()[i]);
        if (alternative >= kAlternatives) return fault("the alternative of a pattern", alternative);
      }
    }
    const bool searches = splits ? operation.kind == kSplitText || operation.kind == kMetaspace
                                 : operation.kind == kReplace;
    if (searches && text.empty()) return fault("the text of an operation", operation.kind);
  }
  return {};
}

bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// No walk leaves the units, and undoing merges ends: halves come before what they make.
Status Reader::check_token_trie(const Table& table) {
  const TokenTrie& trie = table.token_trie;
  const size_t units = trie.units.size();
  if (units % 256 != 0 || trie.tokens.size() != units ||
      table.halves.size() != (units == 0 ? 0 : size_t{vocabulary_})) {
    return fault("the number of tokens by their bytes", static_cast<uint32_t>(units));
  }
  for (const uint32_t unit : trie.units) {
    if (TokenTrie::base(unit) >= units) return fault("the place of a token's byte", unit);
  }
  const auto order = [&](uint32_t token) {
    return token < vocabulary_ ? table.halves[token].order : 0;
  };
  for (const Halves& halves : table.halves) {
    if (halves.order != 0 && halves.order != kNone &&
        (order(halves.left) >= halves.order || order(halves.right) >= halves.order)) {
      return fault("the halves of a token", halves.left);
    }
  }
  return check_tokens(trie.tokens, true, "the token of a text");
}

Status Reader::check_bpe(const Table& table) {
  if (!is_power_of_two(table.pairs.size()) || table.settings.pair_probes > kMostProbes) {
    return fault("the table of pairs", table.settings.pair_probes);
  }
  if (table.pair_bits.size() > kMostPairBits) {
    return fault("the bits of pairs", static_cast<uint32_t>(table.pair_bits.size()));
  }
  for (const Pair& pair : table.pairs) {
    if (pair.left != kNone && pair.token >= vocabulary_) return fault("a pair", pair.token);
  }
  if (table.has(kByteLevel | kByteFallback) && table.bytes.size() != 256) {
    return fault("the number of bytes", static_cast<uint32_t>(table.bytes.size()));
  }
  RL_TRY(check_token_trie(table));
  if (table.has(kIgnoreMerges) && !(table.words.empty() && !table.token_trie.empty()) &&
      (!is_power_of_two(table.words.size()) || table.settings.word_probes > kMostProbes)) {
    return fault("the table of words", table.settings.word_probes);
  }
  return check_tokens(table.words, true, "a word");
}

Status Reader::check_model(const Table& table) {
  switch (table.settings.model) {
    case Model::Bpe:
      return check_bpe(table);
    case Model::Unigram32:
    case Model::Unigram64:
      if (table.scores.size() != size_t{vocabulary_} + 1 ||
          (table.model.empty() && table.piece_trie.empty())) {
        return fault("the number of scores", static_cast<uint32_t>(table.scores.size()));
      }
      return table.has(kByteFallback) && table.bytes.size() != 256
                 ? fault("the number of bytes", static_cast<uint32_t>(table.bytes.size()))
                 : Status();
    case Model::WordPiece:
      return {};
  }
  return fault("the model", static_cast<uint32_t>(table.settings.model));
}

Status Reader::check_pieces(const Table& table) {
  if (vocabulary_ == 0 || vocabulary_ > 1u << 24 || table.piece_ends.size() != vocabulary_ ||
      table.kinds.size() != vocabulary_) {
    return fault("the size of the vocabulary", vocabulary_);
  }
  uint32_t end = 0;
  for (const uint32_t next : table.piece_ends) {
    if (next < end || next > table.pieces.size()) return fault("the end of a piece", next);
    end = next;
  }
  return {};
}

// The offsets that the units name are checked where they are read; the texts end with a zero.
Status Reader::check_charsmap(const Table& table) {
  const Span<const uint8_t> texts = table.charsmap_texts;
  if (table.charsmap_units.empty() || (!texts.empty() && texts[texts.size() - 1] == 0)) return {};
  return fault("the map of characters", static_cast<uint32_t>(texts.size()));
}

Status Reader::check(Table* checked) {
  const Table& table = *checked;
  vocabulary_ = table.settings.vocabulary;
  RL_TRY(check_pieces(table));
  if (table.settings.unknown >= vocabulary_ && table.settings.unknown != kNone) {
    return fault("the unknown token", table.settings.unknown);
  }
  if (static_cast<uint32_t>(table.settings.start_rule) >
      static_cast<uint32_t>(StartRule::WordPiece)) {
    return fault("the start rule", static_cast<uint32_t>(table.settings.start_rule));
  }
  RL_TRY(check_tokens(table.bytes, true, "the token of a byte"));
  RL_TRY(check_tokens(table.characters, true, "the token of a character"));
  RL_TRY(check_tokens(table.before, false, "a token before the text"));
  RL_TRY(check_tokens(table.after, false, "a token after the text"));
  RL_TRY(check_pages(table.character_pages, table.characters.size()));
  RL_TRY(check_pages(table.charsmap_pages, table.charsmap_classes.size()));
  if (!table.joints.empty() &&
      (table.joints.size() <= kAsciiJoints || table.joints.size() > kMostPairBits)) {
    return fault("the joints of characters", static_cast<uint32_t>(table.joints.size()));
  }
  RL_TRY(check_piece_trie(checked));
  RL_TRY(check_trie(&checked->model, vocabulary_, "the model's trie"));
  const size_t added = table.added_tokens.size();
  RL_TRY(check_trie(&checked->raw_added, added, "the trie of added tokens"));
  RL_TRY(check_trie(&checked->added, added, "the trie of normalised added tokens"));
  RL_TRY(check_trie(&checked->kept, vocabulary_, "the trie of texts that are kept"));
  for (const AddedToken& token : table.added_tokens) {
    if (token.token >= vocabulary_ || token.text > table.texts.size() ||
        token.text_size > table.texts.size() - token.text) {
      return fault("an added token", token.token);
    }
  }
  RL_TRY(check_operations(table, table.normalizer, false));
  RL_TRY(check_operations(table, table.splitter, true));
  RL_TRY(check_charsmap(table));
  for (const double score : table.scores) {
    checked->greatest_score = std::max(checked->greatest_score, std::fabs(score));
  }
  return check_model(table);
}

}  // namespace

Result<Table> Table::open(Span<const uint8_t> data, Message* message) {
  Reader reader(data, message);
  Table table;
  RL_TRY(reader.read_sections());
  RL_TRY(reader.read(&table));
  RL_TRY(reader.check(&table));
  return table;
}

uint32_t Table::word(StringView text) const {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < text.size(); ++i) {
    hash = (hash ^ static_cast<uint8_t>(text.data()[i])) * 0x100000001B3u;
  }
  const size_t mask = words.size() - 1;
  size_t slot = static_cast<size_t>(hash >> 32) & mask;
  for (uint32_t i = 0; i < settings.word_probes; ++i) {
    const uint32_t token = words[slot];
    if (token == kNone) return kNone;
    if (piece(token) == text) return token;
    slot = (slot + 1) & mask;
  }
  return kNone;
}

}  // namespace rushlight::llm
