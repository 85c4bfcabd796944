// Inputs for a method whose values do not matter, or lie in files.
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/method_meta.h>

#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace executorch::extension {

using ::executorch::runtime::Method;
using ::executorch::runtime::TensorInfo;

// Frees blocks of malloc(), and the list of them, at the end of its life.
class BufferCleanup final {
 public:
  explicit BufferCleanup(runtime::Span<void*> buffers) : buffers_(buffers) {}
  BufferCleanup(BufferCleanup&& other) noexcept : buffers_(other.buffers_) { other.buffers_ = {}; }
  BufferCleanup(const BufferCleanup&) = delete;
  BufferCleanup& operator=(const BufferCleanup&) = delete;
  BufferCleanup& operator=(BufferCleanup&&) = delete;
  ~BufferCleanup() {
    for (void* buffer : buffers_) std::free(buffer);
    std::free(buffers_.data());
  }

 private:
  runtime::Span<void*> buffers_;
};

// What is refused, so that a damaged program does not take all memory.
struct PrepareInputTensorsOptions {
  size_t max_total_allocation_size = size_t{1} << 30;
  size_t max_inputs = 1024;
};

// Sets every tensor input, in the sizes of the program: to the bytes of `input_buffers`, one for
// each input in order, or to ones without. A buffer may have more bytes than are needed, and not
// fewer (InvalidArgument). A buffer for a number has the 8 bytes of it, or 1 for a bool; without
// one it is left as it is. The result owns the memory, which must live until the method was run.
runtime::Result<BufferCleanup> prepare_input_tensors(
    Method& method, PrepareInputTensorsOptions options = {},
    const std::vector<std::pair<char*, size_t>>& input_buffers = {});

namespace internal {
// Sets an input to a tensor over `data_ptr`, which has room for it, filled with ones if
// `fill_tensor`.
runtime::Error fill_and_set_input(Method& method, TensorInfo& tensor_meta, size_t input_index,
                                  void* data_ptr, bool fill_tensor = true);
}  // namespace internal

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::BufferCleanup;
using ::executorch::extension::prepare_input_tensors;
}  // namespace torch::executor::util
