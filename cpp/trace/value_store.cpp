#include "rushlight/trace/value_store.h"

#include <cstring>

namespace rushlight {

int64_t ValueBuffer::begin(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (begin > memory_.size() || bytes > memory_.size() - begin) return -1;
  if (begin > used_) std::memset(memory_.data() + used_, 0, begin - used_);
  used_ = begin;
  return static_cast<int64_t>(begin);
}

void ValueBuffer::append(Span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

}  // namespace rushlight
