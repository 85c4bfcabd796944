// The threads that kernels share their work with: one pool per process, and a module's view of it.
//
// The pool starts threads when a module loads a method and wants more than there are, and joins
// them when the program ends or the library is unloaded. A region (one call of run) owns the pool;
// one that begins meanwhile on another thread, or inside a task, works in place. Within a region
// nothing is allocated. Each thread begins with the same part of the items in every region, whose
// memory it has in its own cache, and takes from others when it has done its own. A thread without
// work looks for some for a few tens of microseconds, so that the regions of one run find it awake,
// and then sleeps. After a fork the child starts threads of its own with its first region.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/platform/workers.h"

namespace rushlight {

class PoolWorkers final : public Workers {
 public:
  static constexpr size_t kMaxThreads = 256;

  // So many threads work at once, the caller's among them; at least 1, at most kMaxThreads.
  explicit PoolWorkers(size_t threads);
  // Starts the threads that the pool lacks for it; the first run() would. Where the system refuses
  // some, a line of the log says so, and the others do the work.
  void start();

  size_t count() const override { return count_; }
  void run(int64_t items, int64_t grain, Task task, void* data) override;

 private:
  size_t count_;
};

// How many threads a user gets who asks for this many; 0 means usable_cores(). A line of the log,
// the first time, says if these are more than usable_cores(), or than kMaxThreads.
size_t threads_for(size_t asked);

// The physical cores that this process may use: of its CPU affinity, and no more than its control
// group's quota of time allows; at least 1. Found out at the first call.
size_t usable_cores();

}  // namespace rushlight
