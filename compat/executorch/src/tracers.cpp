#include "tracers.h"

#include <executorch/runtime/platform/clock.h>

#include "rushlight/platform/platform.h"
#include "values.h"

namespace executorch::runtime::internal {
namespace {

DelegateDebugIntId number_of(::rushlight::DelegateId id) {
  return id.text != nullptr ? kUnsetDelegateDebugIntId : static_cast<DelegateDebugIntId>(id.number);
}

::rushlight::DelegateId id_of(const char* name, DelegateDebugIntId id) { return {name, id}; }

}  // namespace

void TracerOfEvents::begin(const char* name, ::rushlight::StringView) {
  tracer_->create_event_block(name);
  block_ = tracer_->start_profiling(name);
}

void TracerOfEvents::end(const char*) { tracer_->end_profiling(block_); }

void TracerOfEvents::begin_instruction(uint32_t chain, uint32_t instruction,
                                       ::rushlight::InstructionKind kind,
                                       ::rushlight::StringView name) {
  tracer_->set_chain_debug_handle(static_cast<ChainID>(chain), instruction);
  const bool is_call = kind == ::rushlight::InstructionKind::Kernel ||
                       kind == ::rushlight::InstructionKind::Delegate;
  char text[128];
  const size_t n = name.size() < sizeof(text) ? name.size() : sizeof(text) - 1;
  std::memcpy(text, name.data(), n);
  text[n] = '\0';
  instruction_ = tracer_->start_profiling(is_call ? text : "Instruction");
}

void TracerOfEvents::end_instruction(const ::rushlight::InstructionArguments* arguments) {
  tracer_->end_profiling(instruction_);
  const bool wanted =
      tracer_->event_tracer_debug_level() >= EventTracerDebugLogLevel::kIntermediateOutputs;
  for (size_t i = arguments != nullptr ? arguments->first_written : 0;
       wanted && arguments != nullptr && i < arguments->all.size(); ++i) {
    const EValue value = view_of(*arguments->all[i]);
    if (!value.isNone()) {
      (void)tracer_->log_evalue(value, LoggedEValueType::kIntermediateOutput);
    }
  }
  tracer_->set_chain_debug_handle(kUnsetChainId, kUnsetDebugHandle);
}

void TracerOfEvents::delegate_event(::rushlight::DelegateId id, uint64_t start, uint64_t stop,
                                    ::rushlight::Span<const uint8_t> metadata) {
  tracer_->log_profiling_delegate(id.text, number_of(id), start, stop, metadata.data(),
                                  metadata.size());
}

bool TracerOfEvents::wants_delegate_value(::rushlight::DelegateId) const {
  return tracer_->event_tracer_debug_level() >= EventTracerDebugLogLevel::kIntermediateOutputs;
}

void TracerOfEvents::delegate_value(::rushlight::DelegateId id,
                                    const ::rushlight::DelegateValue& value) {
  int32_t sizes[::rushlight::kMaxRank];
  if (value.sizes.size() > ::rushlight::kMaxRank) return;
  int64_t stride = 1;
  for (size_t i = value.sizes.size(); i-- > 0;) {
    if (value.strides[i] != stride && value.sizes[i] > 1) return;  // has gaps
    sizes[i] = static_cast<int32_t>(value.sizes[i]);
    stride *= value.sizes[i];
  }
  aten::TensorImpl impl(static_cast<aten::ScalarType>(value.dtype),
                        static_cast<ssize_t>(value.sizes.size()), sizes,
                        const_cast<uint8_t*>(value.data));
  (void)tracer_->log_intermediate_output_delegate(id.text, number_of(id), aten::Tensor(&impl));
}

void TracerOfEvents::output(const ::rushlight::EValue& value) {
  if (tracer_->event_tracer_debug_level() < EventTracerDebugLogLevel::kProgramOutputs) return;
  (void)tracer_->log_evalue(view_of(value), LoggedEValueType::kProgramOutput);
}

EventTracerEntry EventsOfTracer::start_profiling_delegate(const char* name, DelegateDebugIntId id) {
  name_ = name;
  return {id, current_chain_id(), current_debug_handle(), ::rushlight::now_ns(),
          name != nullptr ? DelegateDebugIdType::kStr : DelegateDebugIdType::kInt};
}

void EventsOfTracer::end_profiling_delegate(EventTracerEntry entry, const void* metadata,
                                            size_t size) {
  const bool has_name = entry.delegate_event_id_type == DelegateDebugIdType::kStr;
  tracer_->delegate_event(
      id_of(has_name ? name_ : nullptr, static_cast<DelegateDebugIntId>(entry.event_id)),
      entry.start_time, ::rushlight::now_ns(), {static_cast<const uint8_t*>(metadata), size});
}

void EventsOfTracer::log_profiling_delegate(const char* name, DelegateDebugIntId id,
                                            et_timestamp_t start, et_timestamp_t end,
                                            const void* metadata, size_t size) {
  tracer_->delegate_event(id_of(name, id), ticks_to_ns(start), ticks_to_ns(end),
                          {static_cast<const uint8_t*>(metadata), size});
}

Result<bool> EventsOfTracer::log_intermediate_output_delegate(const char* name,
                                                              DelegateDebugIntId id,
                                                              const aten::Tensor& output) {
  if (!tracer_->wants_delegate_value(id_of(name, id))) return false;
  int64_t sizes[::rushlight::kMaxRank];
  int64_t strides[::rushlight::kMaxRank];
  const auto rank = static_cast<size_t>(output.dim());
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = output.sizes()[i];
    strides[i] = output.strides()[i];
  }
  tracer_->delegate_value(id_of(name, id), {static_cast<const uint8_t*>(output.const_data_ptr()),
                                            static_cast<::rushlight::DType>(output.scalar_type()),
                                            {sizes, rank},
                                            {strides, rank}});
  return true;
}

Result<bool> EventsOfTracer::log_intermediate_output_delegate(const char* name,
                                                              DelegateDebugIntId id,
                                                              const ArrayRef<aten::Tensor> output) {
  bool told = false;
  for (const aten::Tensor& tensor : output) {
    ET_ASSIGN_OR_RETURN(one, log_intermediate_output_delegate(name, id, tensor));
    told = told || one;
  }
  return told;
}

template <typename T>
bool EventsOfTracer::tell_number(const char* name, DelegateDebugIntId id, ::rushlight::DType dtype,
                                 T value) {
  if (!tracer_->wants_delegate_value(id_of(name, id))) return false;
  tracer_->delegate_value(id_of(name, id),
                          {reinterpret_cast<const uint8_t*>(&value), dtype, {}, {}});
  return true;
}

Result<bool> EventsOfTracer::log_intermediate_output_delegate(const char* name,
                                                              DelegateDebugIntId id,
                                                              const int& output) {
  return tell_number(name, id, ::rushlight::DType::Int32, output);
}

Result<bool> EventsOfTracer::log_intermediate_output_delegate(const char* name,
                                                              DelegateDebugIntId id,
                                                              const bool& output) {
  return tell_number(name, id, ::rushlight::DType::Bool, output);
}

Result<bool> EventsOfTracer::log_intermediate_output_delegate(const char* name,
                                                              DelegateDebugIntId id,
                                                              const double& output) {
  return tell_number(name, id, ::rushlight::DType::Float64, output);
}

}  // namespace executorch::runtime::internal
