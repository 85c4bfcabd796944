// Where the values of a trace go.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>

#include <cstddef>

namespace executorch::etdump {

class DataSinkBase {
 public:
  virtual ~DataSinkBase() = default;
  // Writes a value; returns where it begins, or an error if there is no room.
  virtual runtime::Result<size_t> write(const void* ptr, size_t length) = 0;
  virtual size_t get_used_bytes() const = 0;
  // Where the next value would begin, which a trace must know before it is written.
  virtual size_t next_offset() const { return get_used_bytes(); }
};

}  // namespace executorch::etdump
