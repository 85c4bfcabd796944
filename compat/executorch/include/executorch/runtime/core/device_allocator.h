// Memory of other devices, of which this runtime has none.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>

#include <cstddef>

namespace executorch::runtime {

class DeviceAllocator {
 public:
  static constexpr size_t kDefaultAlignment = MemoryAllocator::kDefaultAlignment;

  virtual ~DeviceAllocator() = default;
  virtual Result<void*> allocate(size_t nbytes, etensor::DeviceIndex index,
                                 size_t alignment = kDefaultAlignment) = 0;
  virtual void deallocate(void* memory, etensor::DeviceIndex index) = 0;
  virtual Error copy_host_to_device(void* to, const void* from, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual Error copy_device_to_host(void* to, const void* from, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual etensor::DeviceType device_type() const = 0;
};

template <typename Allocator>
void register_device_allocator(Allocator*) {
  static_assert(sizeof(Allocator*) == 0,
                "arenas are in memory that the processor reads: a backend copies to its device in "
                "execute()");
}
// There is none: nullptr.
inline DeviceAllocator* get_device_allocator(etensor::DeviceType) { return nullptr; }

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::DeviceAllocator;
using ::executorch::runtime::get_device_allocator;
using ::executorch::runtime::register_device_allocator;
}  // namespace torch::executor
