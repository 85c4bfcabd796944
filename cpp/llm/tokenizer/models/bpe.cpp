#include "rushlight/llm/tokenizer/models/bpe.h"

#include <algorithm>

#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

constexpr size_t kShort = 128;  // symbols that are searched for the next merge one after the other

// All bytes of the character as tokens, if there is one for each.
template <class Add>
bool add_bytes(const Table& table, StringView character, const Add& add) {
  if (!table.has(kByteFallback)) return false;
  for (size_t i = 0; i < character.size(); ++i) {
    if (table.bytes[static_cast<uint8_t>(character.data()[i])] == kNone) return false;
  }
  for (size_t i = 0; i < character.size(); ++i) {
    add(table.bytes[static_cast<uint8_t>(character.data()[i])]);
  }
  return true;
}

// The bytes from `i` on that are one symbol at first, and its token.
struct First {
  size_t bytes;
  uint32_t code, token;
};

First first_symbol(const Table& table, StringView word, size_t i) {
  const char* text = word.data();
  const Point point = read_point(text + i, word.size() - i);
  if (!table.has(kByteLevel)) return {point.bytes, point.code, table.character(point.code)};
  const auto first = static_cast<uint8_t>(text[i]);
  if (first >= 0xC0 && !table.byte_joins.empty() && !table.character_pages.empty()) {
    const size_t place = table.character_place(point.code), end = i + point.bytes;
    const uint32_t rank = table.character_ranks[place];
    if (rank != kNone && (i == 0 || rank < table.joins(text[i - 1], text[i])) &&
        (end == word.size() || rank < table.joins(text[end - 1], text[end]))) {
      return {point.bytes, point.code, table.characters[place]};
    }
  }
  return {1, 0, table.bytes[first]};
}

// The symbols that a word begins with.
void first_symbols(const Table& table, StringView word, std::vector<Symbol>* symbols) {
  symbols->clear();
  const auto add = [&](uint32_t token) { symbols->push_back({token, kNone, kNone}); };
  bool after_unknown = false;
  for (size_t i = 0; i < word.size();) {
    const char* text = word.data() + i;
    const First point = first_symbol(table, word, i);
    const uint32_t token = point.token;
    i += point.bytes;
    if (token != kNone || table.has(kMergeUnknown)) {
      add(token != kNone ? token : table.settings.vocabulary + point.code);
      after_unknown = false;
    } else if (!add_bytes(table, {text, point.bytes}, add) && table.settings.unknown != kNone) {
      if (!after_unknown || !table.has(kFuseUnknown)) add(table.settings.unknown);
      after_unknown = true;
    }
  }
}

void find_merge(const Table& table, uint32_t right, Symbol* symbol) {
  const Pair* pair = table.pair(symbol->token, right);
  symbol->rank = pair != nullptr ? pair->rank : kNone;
  if (pair != nullptr) symbol->merged = pair->token;
}

void merge_short(const Table& table, std::vector<Symbol>* symbols) {
  Symbol* symbol = symbols->data();
  size_t n = symbols->size();
  for (size_t i = 0; i + 1 < n; ++i) find_merge(table, symbol[i + 1].token, &symbol[i]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (symbol[i].rank < symbol[best].rank) best = i;
    }
    if (symbol[best].rank == kNone) break;
    symbol[best].token = symbol[best].merged;
    std::copy(symbol + best + 2, symbol + n, symbol + best + 1);
    --n;
    symbol[best].rank = kNone;
    if (best + 1 < n) find_merge(table, symbol[best + 1].token, &symbol[best]);
    if (best > 0) find_merge(table, symbol[best].token, &symbol[best - 1]);
  }
  symbols->resize(n);
}

// Long words: the merges wait in a heap, and those of symbols that are gone are skipped.
class LongWord {
 public:
  LongWord(const Table& table, Scratch* scratch)
      : table_(table), list_(scratch->linked), heap_(scratch->merges) {}

  void merge(std::vector<Symbol>* symbols) {
    const auto n = static_cast<uint32_t>(symbols->size());
    list_.clear();
    heap_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      list_.push_back({(*symbols)[i].token, i == 0 ? kNone : i - 1, i + 1 < n ? i + 1 : kNone});
    }
    for (uint32_t i = 0; i + 1 < n; ++i) add(i);
    std::make_heap(heap_.begin(), heap_.end(), later);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Merge merge = heap_.back();
      heap_.pop_back();
      apply(merge);
    }
    symbols->clear();
    for (uint32_t i = 0; i != kNone; i = list_[i].next) {
      symbols->push_back({list_[i].token, kNone, kNone});
    }
  }

 private:
  static bool later(const Merge& a, const Merge& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
  // Adds the merge of a symbol with the next one, if there is one, behind the heap.
  bool add(uint32_t left) {
    const LinkedSymbol& symbol = list_[left];
    const uint32_t right_token = list_[symbol.next].token;
    const Pair* pair = table_.pair(symbol.token, right_token);
    if (pair == nullptr) return false;
    heap_.push_back({pair->rank, left, symbol.token, right_token, pair->token});
    return true;
  }
  void push(uint32_t left) {
    if (add(left)) std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void apply(const Merge& merge) {
    LinkedSymbol& left = list_[merge.left];
    if (left.token != merge.left_token || left.next == kNone) return;
    LinkedSymbol& right = list_[left.next];
    if (right.token != merge.right_token) return;
    left.token = merge.merged;
    right.token = kNone;
    left.next = right.next;
    if (left.next != kNone) {
      list_[left.next].previous = merge.left;
      push(merge.left);
    }
    if (left.previous != kNone) push(left.previous);
  }

  const Table& table_;
  std::vector<LinkedSymbol>& list_;
  std::vector<Merge>& heap_;
};

// Characters that have no token, and were not merged, have numbers after those of tokens.
void append_symbols(const Table& table, const std::vector<Symbol>& symbols,
                    std::vector<int32_t>* out) {
  bool after_unknown = false;
  for (const Symbol& symbol : symbols) {
    const bool is_unknown = symbol.token >= table.settings.vocabulary;
    if (!is_unknown) {
      out->push_back(static_cast<int32_t>(symbol.token));
    } else if (!after_unknown || table.has(kByteFallback)) {
      char bytes[4];
      const size_t n = write_utf8(symbol.token - table.settings.vocabulary, bytes);
      append_unknown(table, {bytes, n}, out);
    }
    after_unknown = is_unknown;
  }
}

}  // namespace

void append_unknown(const Table& table, StringView character, std::vector<int32_t>* out) {
  const auto add = [&](uint32_t token) { out->push_back(static_cast<int32_t>(token)); };
  if (!add_bytes(table, character, add) && table.settings.unknown != kNone) {
    add(table.settings.unknown);
  }
}

void encode_bpe(const Table& table, StringView word, Scratch* scratch, std::vector<int32_t>* out) {
  std::vector<Symbol>& symbols = scratch->symbols;
  first_symbols(table, word, &symbols);
  if (symbols.size() > kShort) {
    LongWord(table, scratch).merge(&symbols);
  } else {
    merge_short(table, &symbols);
  }
  append_symbols(table, symbols, out);
}

}  // namespace rushlight::llm
