// ETDumpGen: records what a module runs, in ExecuTorch's format.
#pragma once

#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/platform.h>

#include <cstdint>
#include <memory>

#define ETDUMP_VERSION 0

namespace executorch::etdump {

using ::executorch::runtime::DelegateDebugIntId;
using ::executorch::runtime::EventTracerFilterBase;
using ::executorch::runtime::Result;

// A trace, in memory of malloc() that the receiver frees.
struct ETDumpResult {
  void* buf;
  size_t size;
};

class ETDumpGen : public ::executorch::runtime::EventTracer {
 public:
  // `buffer` is for the events, and must live as long as the tracer; without one, it has memory of
  // its own. What finds no room is counted in the trace.
  explicit ETDumpGen(::executorch::runtime::Span<uint8_t> buffer = {nullptr, size_t{0}});
  ~ETDumpGen() override;
  ETDumpGen(const ETDumpGen&) = delete;
  ETDumpGen& operator=(const ETDumpGen&) = delete;

  void create_event_block(const char* name) override;
  ::executorch::runtime::EventTracerEntry start_profiling(
      const char* name, ::executorch::runtime::ChainID chain_id = -1,
      ::executorch::runtime::DebugHandle debug_handle = 0) override;
  void end_profiling(::executorch::runtime::EventTracerEntry entry) override;
  ::executorch::runtime::EventTracerEntry start_profiling_delegate(const char* name,
                                                                   DelegateDebugIntId id) override;
  void end_profiling_delegate(::executorch::runtime::EventTracerEntry entry, const void* metadata,
                              size_t metadata_len) override;
  void log_profiling_delegate(const char* name, DelegateDebugIntId id, et_timestamp_t start_time,
                              et_timestamp_t end_time, const void* metadata,
                              size_t metadata_len) override;
  void track_allocation(::executorch::runtime::AllocatorID id, size_t size) override;
  ::executorch::runtime::AllocatorID track_allocator(const char* name) override;
  Result<bool> log_evalue(
      const ::executorch::runtime::EValue& evalue,
      ::executorch::runtime::LoggedEValueType evalue_type =
          ::executorch::runtime::LoggedEValueType::kIntermediateOutput) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const executorch::aten::Tensor& output) override;
  Result<bool> log_intermediate_output_delegate(
      const char* name, DelegateDebugIntId id,
      const ::executorch::runtime::ArrayRef<executorch::aten::Tensor> output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const int& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const bool& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name, DelegateDebugIntId id,
                                                const double& output) override;
  void set_delegation_intermediate_output_filter(EventTracerFilterBase* filter) override;
  ::rushlight::Tracer* rushlight_tracer() override;

  // Where values go that set_event_tracer_debug_level() asks for; they are left out without.
  Result<bool> set_debug_buffer(::executorch::runtime::Span<uint8_t> buffer);
  void set_data_sink(DataSinkBase* data_sink);
  DataSinkBase* get_data_sink();

  // The trace so far; {nullptr, 0} if nothing was recorded, or there is no memory.
  ETDumpResult get_etdump_data();
  // How many blocks there are: loads and runs of methods.
  size_t get_num_blocks();
  // Whether the events lie in memory of the application.
  bool is_static_etdump();
  // Forgets what was recorded.
  void reset();
  void clear_builder() { reset(); }

 private:
  struct Recording;
  std::unique_ptr<Recording> recording_;
};

}  // namespace executorch::etdump

namespace torch::executor {
using etdump_result = ::executorch::etdump::ETDumpResult;
using ::executorch::etdump::ETDumpGen;
}  // namespace torch::executor
