// Sizes of memory that is aligned afterwards.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>

namespace executorch::extension::utils {

// What malloc() must be asked for, so that `size` bytes are left after alignment.
inline runtime::Result<size_t> get_aligned_size(size_t size, size_t alignment) {
  const size_t more = alignment > alignof(std::max_align_t) ? alignment - 1 : 0;
  ET_CHECK_OR_RETURN_ERROR(size <= SIZE_MAX - more, InvalidArgument, "%zu bytes are too many",
                           size);
  return size + more;
}

}  // namespace executorch::extension::utils
