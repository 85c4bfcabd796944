// Where a program's bytes come from. A loader hands out ranges of one immutable image; all the
// runtime's loaders keep the whole image addressable, so a range is a view and costs nothing.
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
  // A view of [offset, offset + size) that lives as long as the loader; InvalidArgument beyond the
  // end, AccessFailed if the source cannot be read.
  virtual Result<Span<const uint8_t>> load(size_t offset, size_t size) = 0;
  // A part of what load() gave is not needed soon: a loader that can get it anew gives back the
  // memory that it takes. Who reads it all the same must find the same bytes.
  virtual void release(Span<const uint8_t>) {}
};

// An image in memory: flash, a linked-in array, a buffer of the caller's. 16-byte aligned.
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
