// Writes what a recorder has in ExecuTorch's format (schema/etdump.fbs), front to back, without
// memory of its own: the size of every part is known before it is written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/trace/recorder.h"

namespace rushlight {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // False if the bytes cannot be written; nothing more is written then.
  virtual bool write(Span<const uint8_t> bytes) = 0;
};

// The bytes that write_etdump() writes.
uint64_t etdump_size(const TraceRecorder& recorder);

// Returns AccessFailed if the sink fails, OutOfResources if the dump is larger than 2 GiB, which
// the format cannot say. What the recorder dropped is in the last block, "Dropped", as events of
// the names "rushlight::events" and "rushlight::values", whose end_time is the number.
Status write_etdump(const TraceRecorder& recorder, ByteSink& sink);

}  // namespace rushlight
