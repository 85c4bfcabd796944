// What a kernel may ask of the runtime during one call.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {

class KernelRuntimeContext {
 public:
  KernelRuntimeContext(EventTracer* event_tracer = nullptr,
                       MemoryAllocator* temp_allocator = nullptr)
      : event_tracer_(event_tracer), temp_allocator_(temp_allocator) {}

  void fail(Error error) { failure_state_ = error; }
  ET_NODISCARD Error failure_state() const { return failure_state_; }
  EventTracer* internal_event_tracer() { return event_tracer_; }
  // Memory until the call ends. NotFound without such memory, MemoryAllocationFailed for too
  // little of it.
  Result<void*> allocate_temp(size_t size, size_t alignment = MemoryAllocator::kDefaultAlignment) {
    ET_CHECK_OR_RETURN_ERROR(temp_allocator_ != nullptr, NotFound, "there is no temp allocator");
    void* memory = temp_allocator_->allocate(size, alignment);
    ET_CHECK_OR_RETURN_ERROR(memory != nullptr, MemoryAllocationFailed,
                             "the temp allocator has no %zu bytes", size);
    return memory;
  }

 private:
  EventTracer* event_tracer_;
  MemoryAllocator* temp_allocator_;
  Error failure_state_ = Error::Ok;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::KernelRuntimeContext;
using RuntimeContext = ::executorch::runtime::KernelRuntimeContext;
}  // namespace torch::executor
namespace executorch::aten {
using RuntimeContext = ::executorch::runtime::KernelRuntimeContext;
}  // namespace executorch::aten
