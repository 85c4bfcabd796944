// The lock of a session: one call of a module runs at a time.
//
// After a fork there is one thread, and a lock that another thread held would never be given back.
// A child therefore starts with new locks: what the thread that forked holds stays held (a backend
// may fork in the middle of a call, and the call goes on in both processes); of what another thread
// held, the lock remembers that the call was cut off, since what it wrote may be half-written.
//
// All functions need the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace rushlight::python {

class Session;

class SessionLock {
 public:
  explicit SessionLock(Session& session);
  ~SessionLock();
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

  // Waits, without the GIL, until the lock is free. False if this thread has it already.
  bool acquire();
  void release();

  // True in a child of a fork that cut off a call of another thread, until it is cleared.
  bool was_cut_off();
  void clear_cut_off() { was_cut_off_ = false; }

  // The session whose lock this thread took last of those that it has; nullptr if it has none.
  static Session* innermost();

 private:
  static void in_child();
  void begin_anew_after_fork();

  Session& session_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::thread::id holder_{};
  SessionLock* outer_ = nullptr;  // what the holder took before
  uint32_t forks_;                // how many forks lay behind the process that used it last
  bool was_cut_off_ = false;
};

}  // namespace rushlight::python
