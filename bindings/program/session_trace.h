// What a session records of its runs, in memory of its own, and how Python reads it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/method/method.h"
#include "rushlight/trace/etdump.h"

namespace rushlight::python {

struct TraceOptions {
  size_t bytes = 0;  // for events; 0: no trace
  size_t value_bytes = 0;
  ValueLevel values = ValueLevel::None;
  std::vector<std::string> names;  // see TraceRecorder::choose_values()
};

// Of the fields that Python passes: the bytes for events and for values, the level, the names.
TraceOptions trace_options(const nanobind::tuple& fields);

class SessionTrace {
 public:
  explicit SessionTrace(const TraceOptions& options);

  Tracer* tracer() { return &recorder_; }
  void clear();
  // The name of the method that ran last; empty if none has.
  StringView method() const;
  // The last run as [(instruction, kind, name, ns, delegate or -1, place inside it)]: each
  // instruction, then what its delegate told. `method` is the one that ran; nullptr if it was
  // unloaded.
  nanobind::list events(const Method* method) const;
  // The whole trace as an ETDump, and the debug buffer with its values. Throws a Failure if it is
  // too large for one.
  nanobind::tuple content() const;
  // How many events and how many values found no room.
  nanobind::tuple dropped() const;

 private:
  const Record* last_run() const;

  // Not initialised: pages that are never used take no memory.
  std::unique_ptr<uint8_t[]> memory_;
  std::unique_ptr<uint8_t[]> value_memory_;
  std::vector<std::string> names_;
  std::vector<StringView> chosen_;
  ValueBuffer values_;
  TraceRecorder recorder_;
};

}  // namespace rushlight::python
