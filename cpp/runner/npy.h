// Input files of the runner: NumPy's .npy (version 1 and 2, row-major or Fortran order) and raw
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/dtype.h"
#include "rushlight/core/tensor.h"

namespace rushlight {

struct InputFile {
  DType dtype = DType::Float32;
  std::vector<int32_t> sizes;
  std::vector<uint8_t> dim_order;
  std::vector<uint8_t> storage;
  size_t offset = 0;  // offset of the elements in `storage`

  const void* data() const { return storage.data() + offset; }
};

// Reads a .npy file, or any other file as the raw bytes of a tensor of these sizes. Returns the
// error, or "".
std::string read_input(const std::string& path, DType dtype, Span<const int32_t> sizes,
                       InputFile* file);

}  // namespace rushlight
