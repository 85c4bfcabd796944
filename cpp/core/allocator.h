// A bump allocator over memory that the caller provides, for a method's own structures and for the
// scratch memory of one kernel call. Single blocks are never freed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

class Allocator {
 public:
  static constexpr size_t kAlignment = alignof(std::max_align_t);

  Allocator() = default;
  Allocator(void* base, size_t size) : base_(static_cast<uint8_t*>(base)), size_(size) {}
  virtual ~Allocator() = default;

  // Returns nullptr if less memory is left than requested, also if the sum overflows.
  // Inline, so that classes compiled with RTTI can derive from this one, which is compiled without.
  virtual void* allocate(size_t bytes, size_t alignment = kAlignment) {
    return bump(bytes, alignment);
  }

  // Memory for `n` objects of type T, which are not constructed; nullptr if it does not fit.
  template <typename T>
  T* allocate_array(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
  }

  // The greatest block that allocate() can still return at this alignment.
  size_t left(size_t alignment = kAlignment) const;

  void reset() { used_ = 0; }
  // The bytes that were handed out, with those lost to alignment.
  size_t used() const { return before_ + used_; }
  size_t capacity() const { return size_; }

 protected:
  void* bump(size_t bytes, size_t alignment);

  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
  size_t before_ = 0;  // used in earlier blocks, of an allocator that has several
};

}  // namespace rushlight
