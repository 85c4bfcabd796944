#include "rushlight/program/loader.h"

namespace rushlight {

Result<Span<const uint8_t>> MemoryLoader::load(size_t offset, size_t size) {
  if (offset > size_ || size > size_ - offset) return Code::InvalidArgument;
  return Span<const uint8_t>(data_ + offset, size);
}

}  // namespace rushlight
