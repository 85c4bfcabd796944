// Letting go of the GIL, taking it, and calling Python, also on daemon threads while the
// interpreter ends.
//
// Before Python 3.14 a thread that asks for the GIL then is ended in the middle of the request, by
// unwinding its stack; that would call std::terminate() in the first destructor on the way. Such a
// thread waits here for the end of the process instead, as newer Pythons have it.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace rushlight::python {

// Runs `body`, which throws nothing: what passes through it is the unwinding.
template <class Body>
auto or_wait(const Body& body) noexcept {
  try {
    return body();
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    or_wait([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

class GilAcquire {
 public:
  GilAcquire() {
    or_wait([this] { state_ = PyGILState_Ensure(); });
  }
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_ = PyGILState_LOCKED;
};

}  // namespace rushlight::python
