// Memory of a device that frees itself; there is none but the processor's, so none can be made.
#pragma once

#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>

namespace executorch::runtime {

class DeviceMemoryBuffer final {
 public:
  DeviceMemoryBuffer() = default;
  // NotFound: no device has an allocator.
  static Result<DeviceMemoryBuffer> create(size_t, etensor::DeviceType, etensor::DeviceIndex = 0,
                                           size_t = DeviceAllocator::kDefaultAlignment) {
    return Error::NotFound;
  }
  void* data() const { return nullptr; }
  size_t size() const { return 0; }
  Span<uint8_t> as_span() const { return {}; }
};

}  // namespace executorch::runtime
