// Keeps the work of one thread on that thread.
#pragma once

namespace executorch::extension::threadpool {

// While a guard exists, what the thread that made it runs does not use the pool's other threads.
struct NoThreadPoolGuard {
  static bool is_enabled();
  static void set_enabled(bool enabled);

  NoThreadPoolGuard() : before_(is_enabled()) { set_enabled(true); }
  ~NoThreadPoolGuard() { set_enabled(before_); }

 private:
  const bool before_;
};

}  // namespace executorch::extension::threadpool

namespace torch::executorch::threadpool {
using ::executorch::extension::threadpool::NoThreadPoolGuard;
}  // namespace torch::executorch::threadpool
