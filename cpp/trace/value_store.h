// Where a recorder puts the bytes of tensors: ExecuTorch's debug buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

class ValueStore {
 public:
  virtual ~ValueStore() = default;
  // Begins a value of so many bytes; returns where, or -1 if there is no room.
  virtual int64_t begin(size_t bytes) = 0;
  // The value's next bytes.
  virtual void append(Span<const uint8_t> bytes) = 0;
};

// Memory that the caller gives.
class ValueBuffer : public ValueStore {
 public:
  explicit ValueBuffer(Span<uint8_t> memory) : memory_(memory) {}
  int64_t begin(size_t bytes) override;
  void append(Span<const uint8_t> bytes) override;
  Span<const uint8_t> bytes() const { return {memory_.data(), used_}; }
  void clear() { used_ = 0; }

 private:
  Span<uint8_t> memory_;
  size_t used_ = 0;
};

}  // namespace rushlight
