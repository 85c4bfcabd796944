// The memory that a method is given.
#pragma once

#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

class MemoryManager final {
 public:
  // All must outlive the method. The arenas may be nullptr for a method that plans none; without
  // temporary memory the method takes some from the platform.
  explicit MemoryManager(MemoryAllocator* method_allocator,
                         HierarchicalAllocator* planned_memory = nullptr,
                         MemoryAllocator* temp_allocator = nullptr)
      : method_allocator_(method_allocator),
        planned_memory_(planned_memory),
        temp_allocator_(temp_allocator) {
    ET_CHECK_MSG(method_allocator != temp_allocator,
                 "a method's memory and its temporary memory must be two allocators");
  }
  ET_DEPRECATED MemoryManager(MemoryAllocator*, HierarchicalAllocator* planned_memory,
                              MemoryAllocator* method_allocator, MemoryAllocator* temp_allocator)
      : MemoryManager(method_allocator, planned_memory, temp_allocator) {}

  MemoryAllocator* method_allocator() const { return method_allocator_; }
  HierarchicalAllocator* planned_memory() const { return planned_memory_; }
  MemoryAllocator* temp_allocator() const { return temp_allocator_; }
  Span<const etensor::Device> planned_buffer_devices() const {
    return planned_memory_ != nullptr ? planned_memory_->planned_buffer_devices()
                                      : Span<const etensor::Device>();
  }
  bool has_device_memory() const { return !planned_buffer_devices().empty(); }

 private:
  MemoryAllocator* method_allocator_;
  HierarchicalAllocator* planned_memory_;
  MemoryAllocator* temp_allocator_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MemoryManager;
}  // namespace torch::executor
