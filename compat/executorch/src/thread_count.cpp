#include "thread_count.h"

#include <executorch/extension/threadpool/cpuinfo_utils.h>
#include <executorch/extension/threadpool/threadpool.h>

#include <atomic>

#include "rushlight/module/thread_pool.h"

namespace executorch::extension {
namespace threadpool {
namespace {

std::atomic<size_t> asked{0};

}  // namespace

size_t internal::asked_threads() { return asked.load(std::memory_order_relaxed); }

size_t ThreadPool::get_thread_count() const {
  return ::rushlight::threads_for(internal::asked_threads());
}

bool ThreadPool::_unsafe_reset_threadpool(uint32_t num_threads) {
  asked.store(num_threads, std::memory_order_relaxed);
  return true;
}

void ThreadPool::run(const std::function<void(size_t)>& fn, size_t range) {
  struct Loop {
    const std::function<void(size_t)>& fn;
  } loop{fn};
  ::rushlight::PoolWorkers workers(get_thread_count());
  workers.run(
      static_cast<int64_t>(range), 1,
      [](void* data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) static_cast<Loop*>(data)->fn(static_cast<size_t>(i));
      },
      &loop);
}

ThreadPool* get_threadpool() {
  static ThreadPool pool;
  return &pool;
}

}  // namespace threadpool

uint32_t cpuinfo::get_num_performant_cores() {
  return static_cast<uint32_t>(::rushlight::usable_cores());
}

}  // namespace executorch::extension
