#include "rushlight/kernel/arena_shadow.h"

#include <cstring>

namespace rushlight {
namespace {

size_t first_difference(const uint8_t* a, const uint8_t* b, size_t n) {
  constexpr size_t kBlock = 4096;  // bytes that memcmp compares before single bytes are compared
  for (size_t at = 0; at < n; at += kBlock) {
    const size_t bytes = n - at < kBlock ? n - at : kBlock;
    if (std::memcmp(a + at, b + at, bytes) == 0) continue;
    while (a[at] == b[at]) ++at;
    return at;
  }
  return n;
}

}  // namespace

size_t room_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.capacity) * element_size(tensor.dtype);
}

// The number of bytes from `start` to `address`, or SIZE_MAX if the address is before the start.
size_t offset_in(const void* start, const void* address) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(start);
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  return at >= from ? at - from : SIZE_MAX;
}

void ArenaShadow::copy() {
  uint8_t* to = memory_;
  for (size_t k = 0; to != nullptr && k < arenas_.size(); to += arenas_[k++].size()) {
    if (!arenas_[k].empty()) std::memcpy(to, arenas_[k].data(), arenas_[k].size());
  }
}

void ArenaShadow::accept(const Tensor& result) {
  if (memory_ == nullptr || result.data == nullptr) return;
  uint8_t* to = memory_;
  for (size_t k = 0; k < arenas_.size(); to += arenas_[k++].size()) {
    const size_t at = offset_in(arenas_[k].data(), result.data);
    if (at >= arenas_[k].size()) continue;
    const size_t rest = arenas_[k].size() - at;
    std::memcpy(to + at, result.data, room_of(result) < rest ? room_of(result) : rest);
  }
}

bool ArenaShadow::restore(ChangedByte* first) {
  bool changed = false;
  const uint8_t* from = memory_;
  for (size_t k = 0; from != nullptr && k < arenas_.size(); from += arenas_[k++].size()) {
    const size_t at = first_difference(arenas_[k].data(), from, arenas_[k].size());
    if (at == arenas_[k].size()) continue;
    if (!changed) *first = {k, at};
    changed = true;
    std::memcpy(arenas_[k].data() + at, from + at, arenas_[k].size() - at);
  }
  return changed;
}

}  // namespace rushlight
