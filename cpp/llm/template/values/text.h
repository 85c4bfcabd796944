// Text of a template's values and output, which knows which of its bytes came from the variables:
// from messages, tools and documents, not from the template. Only the template's own bytes may
// become special tokens.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

struct TextRange {
  size_t begin;
  size_t end;
};

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, bool is_data = false)
      : bytes_(std::move(bytes)), origin_(is_data ? Origin::Data : Origin::Template) {}

  const std::string& bytes() const { return bytes_; }
  StringView view() const { return {bytes_.data(), bytes_.size()}; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool has_data() const { return origin_ != Origin::Template; }

  void append_bytes(StringView bytes, bool is_data = false);
  void append(const Text& other);
  Text slice(size_t begin, size_t end) const;
  // Text that was computed from this one as a whole.
  Text made(std::string bytes) const { return Text(std::move(bytes), has_data()); }
  // The bytes that came from the variables, in order.
  std::vector<TextRange> data() const;
  std::string take_bytes() { return std::move(bytes_); }

 private:
  enum class Origin : unsigned char { Template, Data, Mixed };

  std::string bytes_;
  Origin origin_ = Origin::Template;
  std::vector<TextRange> ranges_;  // of Mixed
};

}  // namespace rushlight::llm
