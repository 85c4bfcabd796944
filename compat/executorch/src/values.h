// Values of the runtime as executorch::runtime::EValue: lists take memory of the caller's.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/span.h>

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/kernel/kernel.h"

namespace executorch::runtime::internal {

// A value that is no list of values; one that is becomes None.
EValue view_of(const ::rushlight::EValue& value);

// The bytes that views of these arguments take, and the views, in such memory, which must be
// aligned for any type. They are valid as long as the arguments.
size_t bytes_of_views(::rushlight::EValue* const* args, size_t count);
Span<EValue*> make_views(::rushlight::EValue* const* args, size_t count, void* memory);

// The runtime's allocators under ExecuTorch's name.
class AllocatorView final : public MemoryAllocator {
 public:
  explicit AllocatorView(::rushlight::Allocator* memory)
      : MemoryAllocator(0, nullptr), memory_(memory) {}
  void* allocate(size_t size, size_t alignment) override {
    if (memory_ == nullptr || !isPowerOf2(alignment)) return nullptr;
    return memory_->allocate(size, alignment);
  }
  void reset() override {}

 private:
  ::rushlight::Allocator* memory_;
};
class ScratchView final : public MemoryAllocator {
 public:
  explicit ScratchView(::rushlight::KernelContext& context)
      : MemoryAllocator(0, nullptr), context_(context) {}
  void* allocate(size_t size, size_t alignment) override {
    if (!isPowerOf2(alignment)) return nullptr;
    const size_t more = alignment > ::rushlight::KernelContext::kScratchAlignment ? alignment : 0;
    if (size > SIZE_MAX - more) return nullptr;
    void* memory = context_.scratch(size + more);
    return memory != nullptr ? alignPointer(memory, alignment) : nullptr;
  }
  void reset() override {}

 private:
  ::rushlight::KernelContext& context_;
};

}  // namespace executorch::runtime::internal
