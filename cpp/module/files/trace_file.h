// A trace that goes to files: values as they are recorded, however many there are, and events,
// which have a fixed room in memory, when it is saved.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/trace/recorder.h"

namespace rushlight {

struct TraceFileOptions {
  std::string path;         // of the ETDump
  std::string values_path;  // of the debug buffer; empty: the path with ".values" at its end
  ValueLevel values = ValueLevel::None;
  std::vector<std::string> names;  // see TraceRecorder::choose_values()
  // For events, some 80 for each; pages count only once they are used.
  size_t bytes = size_t{64} << 20;
};

class TraceFile {
 public:
  TraceFile();
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // May be called once. Returns AccessFailed if a file cannot be made, or MemoryAllocationFailed.
  Status open(const TraceFileOptions& options, Message& message);
  // nullptr before open().
  Tracer* tracer();
  const TraceRecorder& recorder() const { return *recorder_; }
  // Writes the ETDump of everything so far. Returns AccessFailed if a file cannot be written.
  Status save(Message& message);

 private:
  class Values;

  TraceFileOptions options_;
  std::vector<StringView> names_;
  std::unique_ptr<Values> values_;
  std::unique_ptr<TraceRecorder> recorder_;
  std::unique_ptr<uint8_t[]> room_;
};

}  // namespace rushlight
