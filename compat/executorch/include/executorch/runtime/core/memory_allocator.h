// Memory that the caller gives, handed out piece by piece and freed as a whole.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/profiler.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

class MemoryAllocator {
 public:
  static constexpr size_t kDefaultAlignment = alignof(void*);

  MemoryAllocator(uint32_t size, uint8_t* base_address)
      : begin_(base_address), at_(base_address), size_(size) {
    ET_CHECK_MSG(base_address != nullptr || size == 0, "%" PRIu32 " bytes at no address", size);
  }
  virtual ~MemoryAllocator() = default;

  // nullptr if there is too little memory, or the alignment is no power of two.
  virtual void* allocate(size_t size, size_t alignment = kDefaultAlignment) {
    if (begin_ == nullptr || !isPowerOf2(alignment)) return nullptr;
    const auto padding = static_cast<size_t>(alignPointer(at_, alignment) - at_);
    if (padding > free_size() || size > free_size() - padding) {
      ET_LOG(Error, "%zu bytes, aligned to %zu, were asked for; %zu are left", size, alignment,
             free_size());
      return nullptr;
    }
    void* memory = at_ + padding;
    at_ += padding + size;
    return memory;
  }
  template <typename T>
  T* allocateInstance(size_t alignment = alignof(T)) {
    return static_cast<T*>(allocate(sizeof(T), alignment));
  }
  template <typename T>
  T* allocateList(size_t size, size_t alignment = alignof(T)) {
    if (size > SIZE_MAX / sizeof(T)) return nullptr;
    return static_cast<T*>(allocate(size * sizeof(T), alignment));
  }

  virtual uint8_t* base_address() const { return begin_; }
  virtual uint32_t size() const { return size_; }
  virtual size_t used_size() const { return static_cast<size_t>(at_ - begin_); }
  virtual size_t free_size() const { return size_ - used_size(); }
  virtual void reset() { at_ = begin_; }
  void enable_profiling(ET_UNUSED const char* name) {}

 protected:
  int32_t prof_id() const { return -1; }
  static constexpr bool isPowerOf2(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
  }
  static uint8_t* alignPointer(void* address, size_t alignment) {
    const uintptr_t mask = alignment - 1;
    return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(address) + mask) & ~mask);
  }

 private:
  uint8_t* begin_;
  uint8_t* at_;
  uint32_t size_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MemoryAllocator;
}  // namespace torch::executor
