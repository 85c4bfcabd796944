// A copy of a method's arenas, or of a delegate's, to find what foreign code wrote besides its
// results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/core/tensor.h"

namespace rushlight {

// A byte that changed: its arena, and its offset there.
struct ChangedByte {
  size_t arena = 0;
  size_t offset = 0;
};

class ArenaShadow {
 public:
  // `memory` must have room for all of `arenas`; if it is nullptr, nothing is compared.
  ArenaShadow(Span<const Span<uint8_t>> arenas, uint8_t* memory)
      : arenas_(arenas), memory_(memory) {}

  bool is_on() const { return memory_ != nullptr; }
  // Before the call.
  void copy();
  // After it: the memory of a result may have changed.
  void accept(const Tensor& result);
  // Finds the first byte that changed and was not accepted, and undoes all such changes; false if
  // there is none.
  bool restore(ChangedByte* first);
  const uint8_t* address(ChangedByte byte) const {
    return arenas_[byte.arena].data() + byte.offset;
  }
  size_t arena_bytes(size_t arena) const { return arenas_[arena].size(); }

 private:
  Span<const Span<uint8_t>> arenas_;
  uint8_t* memory_;
};

// The bytes that a tensor's memory has.
size_t room_of(const Tensor& tensor);
// The number of bytes from `start` to `address`, or SIZE_MAX if the address is before the start.
size_t offset_in(const void* start, const void* address);

}  // namespace rushlight
