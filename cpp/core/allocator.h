// A bump allocator over memory that the caller provides: what a method needs for its own
// structures, and the scratch of one kernel call. Nothing is ever freed singly.
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

  // nullptr if less is left than asked for (an overflow of the sum included).
  // Inline, so that classes compiled with RTTI can derive from this one, which is not.
  virtual void* allocate(size_t bytes, size_t alignment = kAlignment) {
    return bump(bytes, alignment);
  }

  // Room for `n` objects of type T, not constructed; nullptr if it does not fit.
  template <typename T>
  T* allocate_array(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
  }

  // What allocate() can still give at this alignment, in one piece.
  size_t left(size_t alignment = kAlignment) const;

  void reset() { used_ = 0; }
  size_t used() const { return used_; }
  size_t capacity() const { return size_; }

 protected:
  void* bump(size_t bytes, size_t alignment);

  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace rushlight
