// What a backend tells a tracer, which may be nullptr.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <type_traits>

namespace executorch::runtime {

inline EventTracerEntry event_tracer_start_profiling_delegate(EventTracer* tracer, const char* name,
                                                              DelegateDebugIntId id) {
  return tracer != nullptr ? tracer->start_profiling_delegate(name, id) : EventTracerEntry();
}
inline void event_tracer_end_profiling_delegate(EventTracer* tracer, EventTracerEntry entry,
                                                const void* metadata = nullptr,
                                                size_t metadata_len = 0) {
  if (tracer != nullptr) tracer->end_profiling_delegate(entry, metadata, metadata_len);
}
inline void event_tracer_log_profiling_delegate(EventTracer* tracer, const char* name,
                                                DelegateDebugIntId id, et_timestamp_t start_time,
                                                et_timestamp_t end_time,
                                                const void* metadata = nullptr,
                                                size_t metadata_len = 0) {
  if (tracer == nullptr) return;
  tracer->log_profiling_delegate(name, id, start_time, end_time, metadata, metadata_len);
}
template <typename T>
void event_tracer_log_output_delegate(EventTracer* tracer, const char* name, DelegateDebugIntId id,
                                      const T& output) {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                    std::is_same_v<T, aten::Tensor> || std::is_same_v<T, ArrayRef<aten::Tensor>>,
                "an output is an int, a bool, a double, a Tensor or an ArrayRef of them");
  if (tracer != nullptr) (void)tracer->log_intermediate_output_delegate(name, id, output);
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::event_tracer_end_profiling_delegate;
using ::executorch::runtime::event_tracer_log_output_delegate;
using ::executorch::runtime::event_tracer_log_profiling_delegate;
using ::executorch::runtime::event_tracer_start_profiling_delegate;
}  // namespace torch::executor
