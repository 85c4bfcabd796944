// Tracers of both interfaces as each other's.
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include "rushlight/events/tracer.h"

namespace executorch::runtime::internal {

// Tells an application's EventTracer what the runtime tells. `tracer` may be nullptr, and then
// rushlight() is as well.
class TracerOfEvents final : public ::rushlight::Tracer {
 public:
  TracerOfEvents() = default;
  explicit TracerOfEvents(EventTracer* tracer) : tracer_(tracer) {}
  EventTracer* event_tracer() const { return tracer_; }
  ::rushlight::Tracer* rushlight() {
    if (tracer_ == nullptr) return nullptr;
    ::rushlight::Tracer* own = tracer_->rushlight_tracer();
    return own != nullptr ? own : this;
  }

  void begin(const char* name, ::rushlight::StringView method) override;
  void end(const char* name) override;
  void begin_instruction(uint32_t chain, uint32_t instruction, ::rushlight::InstructionKind kind,
                         ::rushlight::StringView name) override;
  void end_instruction(const ::rushlight::InstructionArguments* arguments) override;
  void delegate_event(::rushlight::DelegateId id, uint64_t start, uint64_t stop,
                      ::rushlight::Span<const uint8_t> metadata) override;
  bool wants_delegate_value(::rushlight::DelegateId id) const override;
  void delegate_value(::rushlight::DelegateId id, const ::rushlight::DelegateValue& value) override;
  void output(const ::rushlight::EValue& value) override;

 private:
  EventTracer* tracer_ = nullptr;
  EventTracerEntry block_ = {};
  EventTracerEntry instruction_ = {};
};

// What a backend is given: tells the runtime's tracer of events inside its delegate. Everything
// else is told by the runtime.
class EventsOfTracer final : public EventTracer {
 public:
  explicit EventsOfTracer(::rushlight::Tracer* tracer) : tracer_(tracer) {}

  void create_event_block(const char*) override {}
  EventTracerEntry start_profiling(const char*, ChainID, DebugHandle) override { return {}; }
  void end_profiling(EventTracerEntry) override {}
  EventTracerEntry start_profiling_delegate(const char* name, DelegateDebugIntId id) override;
  void end_profiling_delegate(EventTracerEntry entry, const void* metadata, size_t size) override;
  void log_profiling_delegate(const char* name, DelegateDebugIntId id, et_timestamp_t start,
                              et_timestamp_t end, const void* metadata, size_t size) override;
  void track_allocation(AllocatorID, size_t) override {}
  AllocatorID track_allocator(const char*) override { return 0; }
  Result<bool> log_evalue(const EValue&, LoggedEValueType) override { return false; }
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const aten::Tensor& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const ArrayRef<aten::Tensor> output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const int& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const bool& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const double& output) override;
  void set_delegation_intermediate_output_filter(EventTracerFilterBase*) override {}

 private:
  template <typename T>
  bool tell_number(const char* name, DelegateDebugIntId id, ::rushlight::DType dtype, T value);

  ::rushlight::Tracer* tracer_;
  const char* name_ = nullptr;  // of the event that has begun
};

}  // namespace executorch::runtime::internal
