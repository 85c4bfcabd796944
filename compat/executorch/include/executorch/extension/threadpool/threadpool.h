// How many threads the runtime uses, and loops on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace executorch::extension::threadpool {

class ThreadPool final {
 public:
  size_t get_thread_count() const;
  // For what is loaded from then on; 0 means all cores that the process may use.
  bool _unsafe_reset_threadpool(uint32_t num_threads);
  // Calls fn(i) for each i below range, and returns when all are done.
  void run(const std::function<void(size_t)>& fn, size_t range);
};

// The process's own. It is never null.
ThreadPool* get_threadpool();

}  // namespace executorch::extension::threadpool

namespace torch::executorch::threadpool {
using ::executorch::extension::threadpool::get_threadpool;
using ::executorch::extension::threadpool::ThreadPool;
}  // namespace torch::executorch::threadpool
