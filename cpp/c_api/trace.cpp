// Traces of modules, and the report of the last failure.
#include <cerrno>
#include <cstdio>
#include <string>

#include "rushlight/c_api/module_object.h"
#include "rushlight/trace/etdump.h"

namespace rushlight::c_api {
namespace {

constexpr uint64_t kEventBytes = uint64_t{1} << 20, kValueBytes = uint64_t{16} << 20;

class CallbackSink final : public ByteSink {
 public:
  CallbackSink(rl_write_fn write, void* userdata) : write_(write), userdata_(userdata) {}
  bool write(Span<const uint8_t> bytes) override {
    return bytes.empty() || write_(userdata_, bytes.data(), bytes.size()) == 0;
  }

 private:
  rl_write_fn write_;
  void* userdata_;
};

int32_t write_file(void* file, const void* data, size_t bytes) {
  return std::fwrite(data, 1, bytes, static_cast<std::FILE*>(file)) == bytes ? 0 : 1;
}

Status check_traced(const Trace* trace, Message* message) {
  if (trace != nullptr) return {};
  return message->fail(Code::InvalidState,
                       "nothing was traced: start a trace before what is to be recorded");
}

// Writes a file by `body(FILE*)`.
template <class Body>
Status save(const std::string& path, const Body& body, Message* message) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  Status status = Code::AccessFailed;
  if (file != nullptr) {
    status = body(file);
    if (std::fclose(file) != 0 && status.ok()) status = Code::AccessFailed;
  }
  if (status.code() != Code::AccessFailed) return status;
  return message->fail(Code::AccessFailed, "%s cannot be written: %s", path.c_str(),
                       std::strerror(errno));
}

}  // namespace

Status make_trace(const rl_trace_options* asked, std::unique_ptr<Trace>* trace, Message* message) {
  rl_trace_options options = {};
  RL_TRY(read_struct(asked, &options, "rl_trace_options", message));
  if (options.values > RL_TRACE_ALL_VALUES) {
    return message->fail(Code::InvalidArgument, "rl_trace_options: values is %u, and at most %u",
                         static_cast<unsigned>(options.values),
                         static_cast<unsigned>(RL_TRACE_ALL_VALUES));
  }
  const uint64_t bytes = options.bytes != 0 ? options.bytes : kEventBytes;
  uint64_t value_bytes = options.value_bytes != 0 ? options.value_bytes : kValueBytes;
  if (options.values == RL_TRACE_TIMES) value_bytes = 0;
  if (bytes < TraceRecorder::kLeastMemory) {
    return message->fail(Code::InvalidArgument, "rl_trace_options: bytes is at least %zu",
                         TraceRecorder::kLeastMemory);
  }
  *trace = std::make_unique<Trace>(static_cast<size_t>(bytes), static_cast<size_t>(value_bytes),
                                   static_cast<ValueLevel>(options.values));
  return {};
}

Status write_trace(const Trace* trace, rl_write_fn write, void* userdata, Message* message) {
  RL_TRY(check_traced(trace, message));
  if (write == nullptr) return check_given(nullptr, "write", message);
  CallbackSink sink(write, userdata);
  const Status status = write_etdump(trace->recorder, sink);
  if (status.code() == Code::OutOfResources) {
    return message->fail(status.code(), "the trace is larger than 2 GiB, which its format allows");
  }
  if (!status.ok()) return message->fail(status.code(), "the trace was not written to its end");
  return {};
}

Status write_values(const Trace* trace, rl_write_fn write, void* userdata, Message* message) {
  RL_TRY(check_traced(trace, message));
  if (write == nullptr) return check_given(nullptr, "write", message);
  const Span<const uint8_t> bytes = trace->values.bytes();
  if (bytes.empty() || write(userdata, bytes.data(), bytes.size()) == 0) return {};
  return message->fail(Code::AccessFailed, "the values were not written to their end");
}

Status save_trace(const Trace* trace, const char* path, Message* message) {
  RL_TRY(check_given(path, "path", message));
  RL_TRY(check_traced(trace, message));
  RL_TRY(save(
      path, [&](std::FILE* file) { return write_trace(trace, write_file, file, message); },
      message));
  if (trace->values.bytes().empty()) return {};
  return save(
      std::string(path) + ".values",
      [&](std::FILE* file) { return write_values(trace, write_file, file, message); }, message);
}

}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_module_trace_start(rl_module* module, const rl_trace_options* options,
                                rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) -> Status {
                               std::unique_ptr<Trace> trace;
                               RL_TRY(make_trace(options, &trace, &failing.message));
                               object.module.set_tracer(&trace->recorder);
                               object.trace = std::move(trace);
                               return {};
                             });
}

rl_status rl_module_trace_stop(rl_module* module, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error, [](ModuleObject& object, Failing&) {
    object.module.set_tracer(nullptr);
    return Status();
  });
}

rl_status rl_module_trace_write(rl_module* module, rl_write_fn write, void* userdata,
                                rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) {
        return write_trace(object.trace.get(), write, userdata, &failing.message);
      });
}

rl_status rl_module_trace_values(rl_module* module, rl_write_fn write, void* userdata,
                                 rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) {
        return write_values(object.trace.get(), write, userdata, &failing.message);
      });
}

rl_status rl_module_trace_save(rl_module* module, const char* path, rl_error* error) {
  return enter<ModuleObject>(module, Use::Alone, error,
                             [&](ModuleObject& object, Failing& failing) {
                               return save_trace(object.trace.get(), path, &failing.message);
                             });
}

rl_status rl_module_failure_report(rl_module* module, rl_bytes_v1* report, rl_error* error) {
  return enter<ModuleObject>(
      module, Use::Alone, error, [&](ModuleObject& object, Failing& failing) -> Status {
        RL_TRY(check_given(report, "report", &failing.message));
        if (object.report == nullptr) {
          return failing.message.fail(Code::InvalidState,
                                      "failures are not reported: open the module with "
                                      "rl_module_options.reports_failures");
        }
        *report = {};
        if (!object.report->has_failure()) return {};
        const Span<const uint8_t> content = object.report->content();
        *report = {content.data(), content.size()};
        return {};
      });
}
