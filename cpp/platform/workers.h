// Threads that share out the work of one kernel: what a kernel sees of a thread pool. The core
// knows no threads; a desktop's pool is in module/, a board may bring its own, and without one the
// work runs on the caller's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rushlight {

class Workers {
 public:
  // Works on the items begin..end-1. It must not fail: what can fail is checked before.
  using Task = void (*)(void* data, int64_t begin, int64_t end);

  // How many threads work at once, the caller's among them.
  virtual size_t count() const = 0;

  // Cuts 0..items-1 into runs of `grain` items (the last may be shorter), calls `task` once for
  // each run, on any thread and in any order, and returns when all are done. The cut depends on
  // `items` and `grain` alone, so results do not depend on the number of threads. Neither allocates
  // nor takes a lock that is held for long; a call from inside a task runs in place.
  virtual void run(int64_t items, int64_t grain, Task task, void* data) = 0;

 protected:
  ~Workers() = default;
};

// Calls body(begin, end) for the same runs, on this thread where `workers` is nullptr or there is
// but one run.
template <class Body>
void share_out(Workers* workers, int64_t items, int64_t grain, Body&& body) {
  if (workers == nullptr || items <= grain) {
    for (int64_t begin = 0; begin < items; begin += grain) {
      body(begin, items - begin < grain ? items : begin + grain);
    }
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  workers->run(
      items, grain,
      [](void* data, int64_t begin, int64_t end) { (*static_cast<Plain*>(data))(begin, end); },
      const_cast<std::remove_const_t<Plain>*>(&body));
}

}  // namespace rushlight
