// The arenas of a method: arena k is for memory id k + 1.
#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

class HierarchicalAllocator final {
 public:
  explicit HierarchicalAllocator(Span<Span<uint8_t>> buffers) : buffers_(buffers) {}
  HierarchicalAllocator(Span<Span<uint8_t>> buffers,
                        Span<const etensor::Device> planned_buffer_devices)
      : buffers_(buffers), devices_(planned_buffer_devices) {
    ET_CHECK_MSG(devices_.size() == buffers_.size(), "%zu devices for %zu arenas", devices_.size(),
                 buffers_.size());
  }
  ET_DEPRECATED HierarchicalAllocator(uint32_t count, MemoryAllocator* allocators)
      : buffers_(own_, count) {
    ET_CHECK_MSG(count <= kOwn, "%" PRIu32 " arenas, but at most %zu are allowed", count, kOwn);
    for (uint32_t i = 0; i < count; ++i) {
      own_[i] = {allocators[i].base_address(), allocators[i].size()};
    }
  }
  HierarchicalAllocator(const HierarchicalAllocator&) = delete;
  HierarchicalAllocator& operator=(const HierarchicalAllocator&) = delete;

  ET_NODISCARD Result<void*> get_offset_address(uint32_t memory_id, size_t offset, size_t size) {
    ET_CHECK_OR_RETURN_ERROR(memory_id < buffers_.size(), InvalidArgument,
                             "there is no arena %" PRIu32 " among %zu", memory_id, buffers_.size());
    const Span<uint8_t> buffer = buffers_[memory_id];
    ET_CHECK_OR_RETURN_ERROR(offset <= buffer.size() && size <= buffer.size() - offset,
                             MemoryAllocationFailed, "%zu bytes at %zu do not fit an arena of %zu",
                             size, offset, buffer.size());
    return static_cast<void*>(buffer.data() + offset);
  }
  Span<const etensor::Device> planned_buffer_devices() const { return devices_; }
  // All arenas, for the runtime.
  Span<Span<uint8_t>> rushlight_buffers() const { return buffers_; }

 private:
  static constexpr size_t kOwn = 16;

  Span<uint8_t> own_[kOwn];
  Span<Span<uint8_t>> buffers_;
  Span<const etensor::Device> devices_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::HierarchicalAllocator;
}  // namespace torch::executor
