// What tokens end with: all ends of their bytes, sorted by what those begin with. So the tokens
// that end with some bytes, or have them within, stand one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace rushlight::llm::grammar {

class Suffixes {
 public:
  static constexpr uint32_t kSorted = 8;  // bytes; those that share so many have any order
  static constexpr size_t kVeryMany = 1024;
  struct Range {
    uint32_t first, last;
    bool empty() const { return first == last; }
  };

  // Of `pieces`, by token, which must live as long. Tokens of more than 255 bytes, or with a zero,
  // are left out.
  explicit Suffixes(const std::vector<std::string>& pieces);

  Range all() const { return {0, static_cast<uint32_t>(suffixes_.size())}; }
  // Of a range of suffixes that share `depth` bytes, less than kSorted: those that go on with a
  // byte that is not zero, and those that end.
  Range with(const Range& range, uint32_t depth, uint8_t byte) const;
  Range ending(const Range& range, uint32_t depth) const;
  uint32_t token(uint32_t number) const { return suffixes_[number] >> 8; }
  // Sets their bits.
  void add_tokens(const Range& range, uint32_t* bits) const;
  const std::string& piece(uint32_t token) const { return pieces_[token]; }
  const std::vector<uint32_t>& left_out() const { return left_out_; }

 private:
  void add_large();
  // The first suffix of a range that goes on with `byte`, or more.
  uint32_t lower_bound(const Range& range, uint32_t depth, uint32_t byte) const;
  // After `depth` bytes; 0 at the end.
  uint8_t byte_of(uint32_t number, uint32_t depth) const {
    const std::string& piece = pieces_[token(number)];
    const size_t at = (suffixes_[number] & 0xFF) + depth;
    return at < piece.size() ? static_cast<uint8_t>(piece[at]) : uint8_t{0};
  }

  const std::vector<std::string>& pieces_;
  std::vector<uint32_t> suffixes_;  // the token, and how many bytes come before
  std::vector<uint32_t> left_out_;
  // By the first number of a range of suffixes of one byte: its tokens as bits, where they are
  // many.
  std::unordered_map<uint32_t, std::vector<uint32_t>> large_;
};

}  // namespace rushlight::llm::grammar
