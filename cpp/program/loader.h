// Where the bytes of a program come from. A loader returns ranges of one immutable image. All
// loaders of the runtime keep the whole image in addressable memory, so a range is a view and needs
// no copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight {

class DataLoader {
 public:
  virtual ~DataLoader() = default;
  virtual size_t size() const = 0;
  // A view of [offset, offset + size) that is valid as long as the loader. Returns InvalidArgument
  // beyond the end, AccessFailed if the source cannot be read.
  virtual Result<Span<const uint8_t>> load(size_t offset, size_t size) = 0;
  // Says that a part of what load() returned is not needed soon. A loader that can read it again
  // may free its memory. A later access must still find the same bytes.
  virtual void release(Span<const uint8_t>) {}
};

// An image in memory: flash, a linked array, or a buffer of the caller. Must be 16-byte aligned.
class MemoryLoader : public DataLoader {
 public:
  MemoryLoader(const void* data, size_t size)
      : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  size_t size() const override { return size_; }
  Result<Span<const uint8_t>> load(size_t offset, size_t size) override;

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace rushlight
