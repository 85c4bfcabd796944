// Where a recorder puts the bytes of tensors: ExecuTorch's debug buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

class ValueStore {
 public:
  virtual ~ValueStore() = default;
  // Keeps a copy; returns where it begins, or -1 if there is no room.
  virtual int64_t put(Span<const uint8_t> bytes) = 0;
};

// Memory that the caller gives.
class ValueBuffer : public ValueStore {
 public:
  explicit ValueBuffer(Span<uint8_t> memory) : memory_(memory) {}
  int64_t put(Span<const uint8_t> bytes) override;
  Span<const uint8_t> bytes() const { return {memory_.data(), used_}; }
  void clear() { used_ = 0; }

 private:
  Span<uint8_t> memory_;
  size_t used_ = 0;
};

}  // namespace rushlight
