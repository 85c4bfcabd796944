// Bytes with a function that frees them.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/assert.h>

#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

class FreeableBuffer final {
 public:
  using FreeFn = void (*)(void* context, void* data, size_t size);
  using FreeUInt64Fn = void (*)(void* context, uint64_t data, size_t size);

  FreeableBuffer() = default;
  FreeableBuffer(const void* data, size_t size, FreeFn free_fn, void* context = nullptr)
      : data_(reinterpret_cast<uintptr_t>(data)),
        size_(size),
        free_fn_(free_fn),
        context_(context) {}
  // For memory of another processor, whose addresses do not fit a pointer here.
  explicit FreeableBuffer(uint64_t data, size_t size, FreeUInt64Fn free_fn, void* context = nullptr)
      : data_(data), size_(size), free_far_fn_(free_fn), context_(context), is_far_(true) {}
  FreeableBuffer(FreeableBuffer&& other) noexcept
      : data_(other.data_),
        size_(other.size_),
        free_fn_(other.free_fn_),
        free_far_fn_(other.free_far_fn_),
        context_(other.context_),
        is_far_(other.is_far_) {
    other.data_ = 0;
    other.size_ = 0;
    other.free_fn_ = nullptr;
    other.free_far_fn_ = nullptr;
  }
  FreeableBuffer(const FreeableBuffer&) = delete;
  FreeableBuffer& operator=(const FreeableBuffer&) = delete;
  FreeableBuffer& operator=(FreeableBuffer&&) = delete;
  ~FreeableBuffer() { Free(); }

  // Further calls change nothing.
  void Free() {
    if (data_ != 0 && free_fn_ != nullptr) {
      free_fn_(context_, reinterpret_cast<void*>(static_cast<uintptr_t>(data_)), size_);
    }
    if (data_ != 0 && free_far_fn_ != nullptr) free_far_fn_(context_, data_, size_);
    data_ = 0;
    size_ = 0;
  }

  // 0 and nullptr once it is freed.
  size_t size() const { return size_; }
  const void* data() const {
    ET_CHECK_MSG(!is_far_, "the buffer is of another processor: call data_uint64_type()");
    return reinterpret_cast<const void*>(static_cast<uintptr_t>(data_));
  }
  Result<const void*> data_safe() const {
    if (is_far_) return Error::InvalidType;
    return data();
  }
  Result<uint64_t> data_uint64_type() const {
    if (!is_far_) return Error::InvalidType;
    return data_;
  }

 private:
  uint64_t data_ = 0;
  size_t size_ = 0;
  FreeFn free_fn_ = nullptr;
  FreeUInt64Fn free_far_fn_ = nullptr;
  void* context_ = nullptr;
  bool is_far_ = false;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::FreeableBuffer;
}  // namespace torch::executor
