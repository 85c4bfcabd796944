// Loops whose parts run on several threads: those of the runtime's pool.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/function_ref.h>
#include <executorch/runtime/platform/assert.h>

#include <cinttypes>
#include <cstdint>

namespace executorch::extension {

namespace internal {
constexpr int64_t GRAIN_SIZE = 32768;
}  // namespace internal

// Calls f(first, last) for parts of at least `grain_size` items that together are begin to end - 1,
// maybe at once. False for a range or a grain that is none.
bool parallel_for(int64_t begin, int64_t end, int64_t grain_size,
                  runtime::FunctionRef<void(int64_t, int64_t)> f);
int64_t get_thread_count();
// The pool numbers no threads: always 0.
inline int64_t get_thread_num() { return 0; }
template <typename Number>
void set_thread_num(Number) {
  static_assert(sizeof(Number) == 0, "the pool numbers its threads by itself");
}

}  // namespace executorch::extension

namespace torch::executor {
using ::executorch::extension::get_thread_num;
using ::executorch::extension::parallel_for;
using ::executorch::extension::set_thread_num;
}  // namespace torch::executor
