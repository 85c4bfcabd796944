// What a backend is given when a delegate is loaded.
#pragma once

#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

class BackendInitContext final {
 public:
  explicit BackendInitContext(MemoryAllocator* runtime_allocator,
                              EventTracer* event_tracer = nullptr,
                              const char* method_name = nullptr,
                              const NamedDataMap* named_data_map = nullptr,
                              Span<const BackendOption> runtime_specs = {})
      : runtime_allocator_(runtime_allocator),
        event_tracer_(event_tracer),
        method_name_(method_name),
        named_data_map_(named_data_map),
        runtime_specs_(runtime_specs) {}

  // Memory that lives as long as the method. The allocator itself must not be kept.
  MemoryAllocator* get_runtime_allocator() { return runtime_allocator_; }
  EventTracer* event_tracer() { return event_tracer_; }
  const char* get_method_name() const { return method_name_; }
  const NamedDataMap* get_named_data_map() const { return named_data_map_; }
  Span<const BackendOption> runtime_specs() const { return runtime_specs_; }
  // An option of the load. NotFound, or InvalidArgument for another type.
  template <typename T>
  Result<T> get_runtime_spec(const char* key) const {
    static_assert(
        std::is_same_v<T, bool> || std::is_same_v<T, int> || std::is_same_v<T, const char*>,
        "an option is a bool, an int or a const char*");
    T value{};
    const Error error = internal::read_option(runtime_specs_, key, value);
    if (error != Error::Ok) return error;
    return value;
  }

 private:
  MemoryAllocator* runtime_allocator_;
  EventTracer* event_tracer_;
  const char* method_name_;
  const NamedDataMap* named_data_map_;
  Span<const BackendOption> runtime_specs_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::BackendInitContext;
}  // namespace torch::executor
