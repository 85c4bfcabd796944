// ETDumpGen over the runtime's recorder.
#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "rushlight/trace/etdump.h"
#include "rushlight/trace/recorder.h"
#include "tracers.h"

namespace executorch::etdump {

using runtime::EventTracer;
using runtime::EventTracerDebugLogLevel;
using runtime::EventTracerEntry;
using runtime::internal::EventsOfTracer;

namespace {

constexpr size_t kOwnBytes = size_t{16} << 20;  // pages count once they are used

// Hands whole values to a sink of the application.
class SinkStore final : public ::rushlight::ValueStore {
 public:
  DataSinkBase* sink = nullptr;

  int64_t begin(size_t bytes) override {
    if (sink == nullptr) return -1;
    value_.clear();
    left_ = bytes;
    return static_cast<int64_t>(sink->next_offset());
  }
  void append(::rushlight::Span<const uint8_t> bytes) override {
    value_.insert(value_.end(), bytes.begin(), bytes.end());
    left_ -= bytes.size() < left_ ? bytes.size() : left_;
    if (left_ > 0 || value_.empty()) return;
    if (!sink->write(value_.data(), value_.size()).ok()) {
      ET_LOG(Error, "the data sink has no room for a value of %zu bytes", value_.size());
    }
  }

 private:
  std::vector<uint8_t> value_;
  size_t left_ = 0;
};

class MemorySink final : public ::rushlight::ByteSink {
 public:
  MemorySink(uint8_t* to, size_t size) : to_(to), left_(size) {}
  bool write(::rushlight::Span<const uint8_t> bytes) override {
    if (bytes.size() > left_) return false;
    if (!bytes.empty()) std::memcpy(to_, bytes.data(), bytes.size());
    to_ += bytes.size();
    left_ -= bytes.size();
    return true;
  }

 private:
  uint8_t* to_;
  size_t left_;
};

// Passes on what a recorder is told, values as far as the level of the application's tracer asks
// for them at that time. It is no subclass: the runtime is compiled without RTTI.
class Recorder final : public ::rushlight::Tracer {
 public:
  Recorder(EventTracer* owner, ::rushlight::TraceRecorder* recorder)
      : owner_(owner), recorder_(recorder) {}

  void set_bundled_case(int32_t index) override { recorder_->set_bundled_case(index); }
  void begin(const char* name, ::rushlight::StringView method) override {
    recorder_->begin(name, method);
  }
  void end(const char* name) override { recorder_->end(name); }
  void begin_instruction(uint32_t chain, uint32_t instruction, ::rushlight::InstructionKind kind,
                         ::rushlight::StringView name) override {
    recorder_->begin_instruction(chain, instruction, kind, name);
  }
  void end_instruction(const ::rushlight::InstructionArguments* arguments) override {
    recorder_->end_instruction(wants_all() ? arguments : nullptr);
  }
  void delegate_event(::rushlight::DelegateId id, uint64_t start, uint64_t stop,
                      ::rushlight::Span<const uint8_t> metadata) override {
    recorder_->delegate_event(id, start, stop, metadata);
  }
  bool wants_delegate_value(::rushlight::DelegateId id) const override {
    if (!wants_all() || !recorder_->wants_delegate_value(id)) return false;
    if (filter == nullptr) return true;
    const bool has_name = id.text != nullptr;
    const auto number = static_cast<DelegateDebugIntId>(id.number);
    const auto chosen =
        filter->filter(id.text, has_name ? runtime::kUnsetDelegateDebugIntId : number);
    return chosen.ok() && chosen.get();
  }
  void delegate_value(::rushlight::DelegateId id,
                      const ::rushlight::DelegateValue& value) override {
    recorder_->delegate_value(id, value);
  }
  void allocation(const char* memory, int32_t index, uint64_t bytes) override {
    recorder_->allocation(memory, index, bytes);
  }
  void output(const ::rushlight::EValue& value) override {
    if (owner_->event_tracer_debug_level() == EventTracerDebugLogLevel::kNoLogging) return;
    recorder_->output(value);
  }

  EventTracerFilterBase* filter = nullptr;

 private:
  bool wants_all() const {
    return owner_->event_tracer_debug_level() == EventTracerDebugLogLevel::kIntermediateOutputs;
  }

  EventTracer* owner_;
  ::rushlight::TraceRecorder* recorder_;
};

}  // namespace

struct ETDumpGen::Recording {
  Recording(EventTracer* owner, runtime::Span<uint8_t> buffer)
      : is_static(buffer.size() >= ::rushlight::TraceRecorder::kLeastMemory),
        own(is_static ? nullptr : static_cast<uint8_t*>(std::malloc(kOwnBytes)), &std::free),
        trace(is_static ? ::rushlight::Span<uint8_t>(buffer.data(), buffer.size())
                        : ::rushlight::Span<uint8_t>(own.get(), own ? kOwnBytes : 0),
              &values, ::rushlight::ValueLevel::All),
        recorder(owner, &trace),
        events(&recorder) {}

  bool is_static;
  std::unique_ptr<uint8_t, void (*)(void*)> own;
  SinkStore values;
  BufferDataSink debug_buffer;
  ::rushlight::TraceRecorder trace;
  Recorder recorder;
  EventsOfTracer events;  // what an application tells of its own
};

ETDumpGen::ETDumpGen(runtime::Span<uint8_t> buffer)
    : recording_(std::make_unique<Recording>(this, buffer)) {
  if (buffer.data() != nullptr && !recording_->is_static) {
    ET_LOG(Error,
           "ETDumpGen: the buffer has %zu bytes, and %zu at least are needed: it is not used",
           buffer.size(), ::rushlight::TraceRecorder::kLeastMemory);
  }
}

ETDumpGen::~ETDumpGen() = default;

::rushlight::Tracer* ETDumpGen::rushlight_tracer() { return &recording_->recorder; }

// The runtime tells of its blocks and instructions itself; these are for an application's own.
void ETDumpGen::create_event_block(const char* name) {
  recording_->recorder.begin(name, {name, std::strlen(name)});
  recording_->recorder.end(name);
}
EventTracerEntry ETDumpGen::start_profiling(const char* name, runtime::ChainID,
                                            runtime::DebugHandle) {
  return recording_->events.start_profiling_delegate(name, runtime::kUnsetDelegateDebugIntId);
}
void ETDumpGen::end_profiling(EventTracerEntry entry) {
  recording_->events.end_profiling_delegate(entry, nullptr, 0);
}
EventTracerEntry ETDumpGen::start_profiling_delegate(const char* name, DelegateDebugIntId id) {
  return recording_->events.start_profiling_delegate(name, id);
}
void ETDumpGen::end_profiling_delegate(EventTracerEntry entry, const void* metadata, size_t size) {
  recording_->events.end_profiling_delegate(entry, metadata, size);
}
void ETDumpGen::log_profiling_delegate(const char* name, DelegateDebugIntId id,
                                       et_timestamp_t start, et_timestamp_t end,
                                       const void* metadata, size_t size) {
  recording_->events.log_profiling_delegate(name, id, start, end, metadata, size);
}
void ETDumpGen::track_allocation(runtime::AllocatorID, size_t) {}
runtime::AllocatorID ETDumpGen::track_allocator(const char*) { return 0; }

Result<bool> ETDumpGen::log_evalue(const runtime::EValue& value, runtime::LoggedEValueType) {
  if (!value.isTensor()) return false;
  return log_intermediate_output_delegate(nullptr, 0, value.toTensor());
}
Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                         const aten::Tensor& output) {
  return recording_->events.log_intermediate_output_delegate(name, id, output);
}
Result<bool> ETDumpGen::log_intermediate_output_delegate(
    const char* name, DelegateDebugIntId id, const runtime::ArrayRef<aten::Tensor> output) {
  return recording_->events.log_intermediate_output_delegate(name, id, output);
}
Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                         const int& output) {
  return recording_->events.log_intermediate_output_delegate(name, id, output);
}
Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                         const bool& output) {
  return recording_->events.log_intermediate_output_delegate(name, id, output);
}
Result<bool> ETDumpGen::log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                         const double& output) {
  return recording_->events.log_intermediate_output_delegate(name, id, output);
}
void ETDumpGen::set_delegation_intermediate_output_filter(EventTracerFilterBase* filter) {
  recording_->recorder.filter = filter;
}

Result<bool> ETDumpGen::set_debug_buffer(runtime::Span<uint8_t> buffer) {
  Result<BufferDataSink> sink = BufferDataSink::create(buffer);
  if (!sink.ok()) return sink.error();
  recording_->debug_buffer = std::move(sink.get());
  recording_->values.sink = &recording_->debug_buffer;
  return true;
}
void ETDumpGen::set_data_sink(DataSinkBase* data_sink) { recording_->values.sink = data_sink; }
DataSinkBase* ETDumpGen::get_data_sink() { return recording_->values.sink; }

ETDumpResult ETDumpGen::get_etdump_data() {
  if (get_num_blocks() == 0) return {nullptr, 0};
  const auto size = static_cast<size_t>(::rushlight::etdump_size(recording_->trace));
  auto* bytes = static_cast<uint8_t*>(std::malloc(size));
  if (bytes == nullptr) return {nullptr, 0};
  MemorySink sink(bytes, size);
  if (!::rushlight::write_etdump(recording_->trace, sink).ok()) {
    std::free(bytes);
    return {nullptr, 0};
  }
  return {bytes, size};
}

size_t ETDumpGen::get_num_blocks() {
  size_t blocks = 0;
  const ::rushlight::TraceRecorder& recorder = recording_->trace;
  for (auto* record = recorder.first(); record != nullptr; record = recorder.next(*record)) {
    blocks += record->kind == ::rushlight::RecordKind::Block ? 1 : 0;
  }
  return blocks;
}

bool ETDumpGen::is_static_etdump() { return recording_->is_static; }

void ETDumpGen::reset() { recording_->trace.clear(); }

}  // namespace executorch::etdump
