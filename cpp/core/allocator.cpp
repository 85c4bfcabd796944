#include "rushlight/core/allocator.h"

namespace rushlight {
namespace {

// The number of bytes from `address` to the next multiple of `alignment`, which is a power of two.
size_t padding(const uint8_t* address, size_t alignment) {
  return (0 - reinterpret_cast<uintptr_t>(address)) & (alignment - 1);
}

}  // namespace

size_t Allocator::left(size_t alignment) const {
  const size_t skip = padding(base_ + used_, alignment);
  const size_t rest = size_ - used_;
  return skip < rest ? rest - skip : 0;
}

void* Allocator::bump(size_t bytes, size_t alignment) {
  if (base_ == nullptr) return nullptr;
  const size_t skip = padding(base_ + used_, alignment);
  const size_t rest = size_ - used_;
  if (skip > rest || bytes > rest - skip) return nullptr;
  uint8_t* start = base_ + used_ + skip;
  used_ += skip + bytes;
  return start;
}

}  // namespace rushlight
