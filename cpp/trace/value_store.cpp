#include "rushlight/trace/value_store.h"

#include <cstring>

namespace rushlight {

int64_t ValueBuffer::put(Span<const uint8_t> bytes) {
  constexpr size_t kAlignment = 64;
  const size_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  if (begin > memory_.size() || bytes.size() > memory_.size() - begin) return -1;
  if (begin > used_) std::memset(memory_.data() + used_, 0, begin - used_);
  if (!bytes.empty()) std::memcpy(memory_.data() + begin, bytes.data(), bytes.size());
  used_ = begin + bytes.size();
  return static_cast<int64_t>(begin);
}

}  // namespace rushlight
