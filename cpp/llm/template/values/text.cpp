#include "rushlight/llm/template/values/text.h"

#include <algorithm>

namespace rushlight::llm {

void Text::append_bytes(StringView bytes, bool is_data) {
  if (bytes.empty()) return;
  const Origin origin = is_data ? Origin::Data : Origin::Template;
  const size_t begin = bytes_.size();
  bytes_.append(bytes.data(), bytes.size());
  if (begin == 0) {
    origin_ = origin;
    return;
  }
  if (origin_ == origin) return;
  if (origin_ != Origin::Mixed) {
    if (origin_ == Origin::Data) ranges_.push_back({0, begin});
    origin_ = Origin::Mixed;
  }
  if (!is_data) return;
  if (!ranges_.empty() && ranges_.back().end == begin) {
    ranges_.back().end = bytes_.size();
  } else {
    ranges_.push_back({begin, bytes_.size()});
  }
}

void Text::append(const Text& other) {
  if (other.origin_ != Origin::Mixed) return append_bytes(other.view(), other.has_data());
  size_t at = 0;
  for (const TextRange& range : other.ranges_) {
    append_bytes({other.bytes_.data() + at, range.begin - at});
    append_bytes({other.bytes_.data() + range.begin, range.end - range.begin}, true);
    at = range.end;
  }
  append_bytes({other.bytes_.data() + at, other.bytes_.size() - at});
}

Text Text::slice(size_t begin, size_t end) const {
  if (origin_ != Origin::Mixed) {
    return Text(bytes_.substr(begin, end - begin), origin_ == Origin::Data);
  }
  Text part;
  size_t at = begin;
  for (const TextRange& range : ranges_) {
    const size_t from = std::max(range.begin, begin), to = std::min(range.end, end);
    if (from >= to) continue;
    part.append_bytes({bytes_.data() + at, from - at});
    part.append_bytes({bytes_.data() + from, to - from}, true);
    at = to;
  }
  part.append_bytes({bytes_.data() + at, end - at});
  return part;
}

std::vector<TextRange> Text::data() const {
  if (origin_ == Origin::Data && !empty()) return {{0, bytes_.size()}};
  return ranges_;
}

}  // namespace rushlight::llm
