// What a backend is given with options that are set outside of a load: nothing.
#pragma once

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>

namespace executorch::runtime {
class BackendOptionContext final {
 public:
  explicit BackendOptionContext() {}
};
}  // namespace executorch::runtime
