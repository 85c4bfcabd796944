// Loops on the runtime's pool of threads, and what keeps them from it.
#include <executorch/extension/threadpool/threadpool_guard.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include "rushlight/module/thread_pool.h"
#include "thread_count.h"

namespace executorch::extension {

bool parallel_for(int64_t begin, int64_t end, int64_t grain_size,
                  runtime::FunctionRef<void(int64_t, int64_t)> f) {
  ET_CHECK_OR_RETURN_FALSE(begin >= 0 && end >= begin && grain_size > 0,
                           "begin is %" PRId64 ", end %" PRId64 ", the grain %" PRId64, begin, end,
                           grain_size);
  struct Part {
    runtime::FunctionRef<void(int64_t, int64_t)> f;
    int64_t begin;
  } part = {f, begin};
  ::rushlight::PoolWorkers workers(::rushlight::threads_for(threadpool::internal::asked_threads()));
  workers.run(
      end - begin, grain_size,
      [](void* data, int64_t from, int64_t to) {
        const Part& whole = *static_cast<Part*>(data);
        whole.f(whole.begin + from, whole.begin + to);
      },
      &part);
  return true;
}

int64_t get_thread_count() {
  return ::rushlight::runs_alone() ? 1
                                   : static_cast<int64_t>(::rushlight::threads_for(
                                         threadpool::internal::asked_threads()));
}

namespace threadpool {

bool NoThreadPoolGuard::is_enabled() { return ::rushlight::runs_alone(); }
void NoThreadPoolGuard::set_enabled(bool enabled) { ::rushlight::set_runs_alone(enabled); }

}  // namespace threadpool
}  // namespace executorch::extension
