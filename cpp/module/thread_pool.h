// The threads that kernels share their work with: one pool for each process, and a module's view of
// it.
//
// The pool starts threads when a module that is to use more than there are loads a method, and
// joins them when the program ends or the library is unloaded. A region (one call of run) owns the
// pool; a region that starts meanwhile on another thread, or inside of a task, runs in place. A
// region allocates nothing. Each thread starts with the same part of the items in every region,
// since the memory of these is in its cache, and takes others' items when it has finished its own.
// A thread without work waits actively for some tens of microseconds, so that it is awake for the
// next region of a run, and then sleeps. After a fork, the child starts its own threads in its
// first region.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/platform/workers.h"

namespace rushlight {

class PoolWorkers final : public Workers {
 public:
  static constexpr size_t kMaxThreads = 256;

  // `threads` is the number of threads that work at once, including the caller's: 1 to kMaxThreads.
  explicit PoolWorkers(size_t threads);
  // Starts the threads that the pool lacks; otherwise the first run() does. If the system refuses
  // some, a line is written to the log, and the others do the work.
  void start();

  size_t count() const override { return count_; }
  void run(int64_t items, int64_t grain, Task task, void* data) override;

 private:
  size_t count_;
};

// Whether regions that this thread starts run in place, whatever count() says; false at first.
bool runs_alone();
void set_runs_alone(bool alone);

// The number of threads that a user gets who requests `asked`; 0 means usable_cores(). The first
// time that this is more than usable_cores() or kMaxThreads, a line is written to the log.
size_t threads_for(size_t asked);

// The number of physical cores that this process may use: those of its CPU affinity, but no more
// than the time quota of its control group allows; at least 1. Computed at the first call.
size_t usable_cores();

}  // namespace rushlight
