#include "rushlight/llm/tokenizer/models/longest.h"

namespace rushlight::llm {
namespace {

class LongestTokens {
 public:
  LongestTokens(const Table& table, uint32_t identity, StringView word, Scratch* scratch,
                std::vector<int32_t>* out)
      : table_(table),
        identity_(identity),
        text_(reinterpret_cast<const uint8_t*>(word.data())),
        size_(word.size()),
        steps_left_(kSteps * (word.size() + kSteps)),
        first_(out->size()),
        pairs_(scratch->pairs),
        begins_(scratch->begins),
        dead_(scratch->dead),
        out_(*out) {}

  bool run() {
    begins_.clear();
    size_t begin = 0, most = size_;
    while (begin < size_) {
      const TokenTrie::Match match = table_.token_trie.longest(text_, begin, most);
      steps_left_ -= static_cast<ptrdiff_t>(1 + match.steps);
      if (match.token == kNone) {
        if (begins_.empty()) break;
        mark_dead(begin);
        most = begin - 1;
        begin = begins_.back();
        begins_.pop_back();
        out_.pop_back();
      } else if (may_follow(match.token, match.end)) {
        begins_.push_back(static_cast<uint32_t>(begin));
        out_.push_back(static_cast<int32_t>(match.token));
        begin = match.end;
        most = size_;
      } else {
        most = match.end - 1;
      }
      if (steps_left_ < 0) break;
    }
    if (begin >= size_) return true;
    out_.resize(first_);
    return false;
  }

 private:
  static constexpr size_t kSteps = 32;  // for each byte

  // Tokens that lead to a position are the only ones that do: once they go no farther, none do.
  void mark_dead(size_t end) {
    if (!any_dead_) dead_.assign(size_ / 64 + 1, 0);
    any_dead_ = true;
    dead_[end / 64] |= uint64_t{1} << (end % 64);
  }
  bool may_follow(uint32_t token, size_t end) {
    if (any_dead_ && (dead_[end / 64] >> (end % 64) & 1) != 0) return false;
    if (table_.halves[token].order == kNone) return begins_.empty() && end == size_;
    if (begins_.empty()) return true;
    const int32_t left = out_.back(), right = static_cast<int32_t>(token);
    if (pairs_.holds(identity_, left, right)) return true;
    if (!stay_apart(static_cast<uint32_t>(left), token)) return false;
    pairs_.store(identity_, left, right);
    return true;
  }

  uint32_t order(uint32_t token) const {
    return token < table_.halves.size() ? table_.halves[token].order : 0;
  }

  // Whether the texts of two tokens together become these. The merges that made the two are undone,
  // the last one first. Each would come after a merge of what is beside each other then that has a
  // lower rank, or is of the same and stands farther to the left.
  bool stay_apart(uint32_t left, uint32_t right) {
    uint64_t limit = ~uint64_t{0};
    for (;;) {
      const Pair* pair = table_.pair(left, right);
      if (pair != nullptr && 2 * (uint64_t{pair->rank} + 1) < limit) return false;
      const uint32_t of_left = order(left), of_right = order(right);
      if (of_left == 0 && of_right == 0) return true;
      if (of_left > of_right) {
        limit = 2 * uint64_t{of_left};
        left = table_.halves[left].right;
      } else {
        limit = 2 * uint64_t{of_right} + 1;
        right = table_.halves[right].left;
      }
      if (--steps_left_ < 0) return false;
    }
  }

  const Table& table_;
  uint32_t identity_;
  const uint8_t* text_;
  size_t size_;
  ptrdiff_t steps_left_;
  size_t first_;  // of the word's tokens
  PairCache& pairs_;
  std::vector<uint32_t>& begins_;  // of the tokens, in the word
  std::vector<uint64_t>& dead_;    // bits of positions
  std::vector<int32_t>& out_;
  bool any_dead_ = false;
};

}  // namespace

bool encode_longest(const Table& table, uint32_t identity, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out) {
  return !table.token_trie.empty() && LongestTokens(table, identity, word, scratch, out).run();
}

}  // namespace rushlight::llm
