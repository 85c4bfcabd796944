// Alignment of addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::etdump::internal {

// The first address from `ptr` on that is a multiple of `alignment`, a power of two.
inline uint8_t* align_pointer(void* ptr, size_t alignment) {
  const auto address = reinterpret_cast<uintptr_t>(ptr);
  return static_cast<uint8_t*>(ptr) + ((~address + 1) & (alignment - 1));
}

}  // namespace executorch::etdump::internal
