// What a module or a language model records, and how it is written for the caller.
#pragma once

#include <memory>

#include "rushlight/c_api/entry.h"
#include "rushlight/trace/recorder.h"

namespace rushlight::c_api {

struct Trace {
  explicit Trace(size_t bytes, size_t value_bytes, ValueLevel level)
      : memory(new uint8_t[bytes]),
        value_memory(new uint8_t[value_bytes]),
        values({value_memory.get(), value_bytes}),
        recorder({memory.get(), bytes}, &values, level) {}

  std::unique_ptr<uint8_t[]> memory;
  std::unique_ptr<uint8_t[]> value_memory;
  ValueBuffer values;
  TraceRecorder recorder;
};

// Makes what the caller asks for; `asked` may be nullptr.
Status make_trace(const rl_trace_options* asked, std::unique_ptr<Trace>* trace, Message* message);

// Each returns InvalidState without a trace.
Status write_trace(const Trace* trace, rl_write_fn write, void* userdata, Message* message);
Status write_values(const Trace* trace, rl_write_fn write, void* userdata, Message* message);
Status save_trace(const Trace* trace, const char* path, Message* message);

}  // namespace rushlight::c_api
