// The header of a data file. FlatTensorDataMap::load() reads and checks it; it is not offered
// alone.
#pragma once

#include <executorch/runtime/core/result.h>

#include <cstddef>
#include <cstdint>

namespace executorch::extension {

struct FlatTensorHeader {
  static constexpr size_t kNumHeadBytes = 64;

  template <typename Data>
  static runtime::Result<FlatTensorHeader> Parse(const Data*, size_t) {
    static_assert(
        sizeof(Data*) == 0,
        "the header of a data file is not public here: FlatTensorDataMap::load() checks it");
    return runtime::Error::NotSupported;
  }
};

}  // namespace executorch::extension
