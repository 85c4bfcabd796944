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

// The symbols that a word begins with.
void first_symbols(const Table& table, StringView word, std::vector<Symbol>* symbols) {
  symbols->clear();
  const auto add = [&](uint32_t token) { symbols->push_back({token, kNone}); };
  bool after_unknown = false;
  for (size_t i = 0; i < word.size();) {
    const char* text = word.data() + i;
    const bool is_byte = table.has(kByteLevel);
    const Point point = is_byte ? Point{0, 1} : read_point(text, word.size() - i);
    const uint32_t token =
        is_byte ? table.bytes[static_cast<uint8_t>(*text)] : table.character(point.code);
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

// The symbols of a word by the places where they begin. A merge leaves the place of its right
// symbol empty.
class ShortWordMerges {
 public:
  ShortWordMerges(const Table& table, std::vector<Symbol>* symbols)
      : table_(table), symbols_(*symbols), size_(symbols->size()) {
    keys_[0] = kNothing;
  }

  void run() {
    for (size_t i = 0; i < size_; ++i) {
      previous_[i] = static_cast<uint8_t>(i - 1);
      next_[i] = static_cast<uint8_t>(i + 1);
    }
    for (size_t i = 0; i < size_; ++i) find(i);
    for (uint64_t best = least(); best != kNothing; best = least()) {
      merge(static_cast<size_t>(best & 0xFF));
    }
    size_t written = 0;
    for (size_t i = 0; i < size_; i = next_[i]) symbols_[written++].token = symbols_[i].token;
    symbols_.resize(written);
  }

 private:
  static constexpr uint64_t kNothing = ~uint64_t{0};

  // Rank and place together are least for the first merge, and the leftmost one of its rank.
  uint64_t least() const {
    uint64_t a = kNothing, b = kNothing;
    size_t i = 0;
    for (; i + 1 < size_; i += 2) {
      a = std::min(a, keys_[i]);
      b = std::min(b, keys_[i + 1]);
    }
    return std::min({a, b, i < size_ ? keys_[i] : kNothing});
  }
  // The merge of the symbol at a place with the next one.
  void find(size_t i) {
    const size_t right = next_[i];
    const Pair* pair = nullptr;
    if (right < size_) pair = table_.pair(symbols_[i].token, symbols_[right].token);
    keys_[i] = pair != nullptr ? uint64_t{pair->rank} << 8 | i : kNothing;
    if (pair != nullptr) symbols_[i].merged = pair->token;
  }
  void merge(size_t i) {
    const size_t right = next_[i], after = next_[right];
    symbols_[i].token = symbols_[i].merged;
    keys_[right] = kNothing;
    next_[i] = static_cast<uint8_t>(after);
    if (after < size_) previous_[after] = static_cast<uint8_t>(i);
    find(i);
    if (i > 0) find(previous_[i]);
  }

  const Table& table_;
  std::vector<Symbol>& symbols_;
  size_t size_;
  uint64_t keys_[kShort];
  uint8_t previous_[kShort], next_[kShort];
};

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
      symbols->push_back({list_[i].token, kNone});
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
    ShortWordMerges(table, &symbols).run();
  }
  append_symbols(table, symbols, out);
}

}  // namespace rushlight::llm
