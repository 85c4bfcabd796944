// The number of threads that an application asked for.
#pragma once

#include <cstddef>

namespace executorch::extension::threadpool::internal {

// 0: all cores that the process may use.
size_t asked_threads();

}  // namespace executorch::extension::threadpool::internal
