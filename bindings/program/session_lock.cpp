#include "program/session_lock.h"

#include "gil.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace rushlight::python {

namespace {

std::atomic<uint32_t> forks{0};  // between the first process and this one
thread_local SessionLock* held = nullptr;

}  // namespace

// Runs in the child, on its only thread: what that thread holds is good here, too.
void SessionLock::in_child() {
  const uint32_t now = forks.fetch_add(1, std::memory_order_relaxed) + 1;
  for (SessionLock* lock = held; lock != nullptr; lock = lock->outer_) lock->forks_ = now;
}

SessionLock::SessionLock(Session& session)
    : session_(session), forks_(forks.load(std::memory_order_relaxed)) {
#if defined(__unix__) || defined(__APPLE__)
  static const int watched = pthread_atfork(nullptr, nullptr, in_child);
  (void)watched;
#endif
}

SessionLock::~SessionLock() { begin_anew_after_fork(); }

// The old mutex is never destroyed: who had it is no more.
void SessionLock::begin_anew_after_fork() {
  const uint32_t now = forks.load(std::memory_order_relaxed);
  if (forks_ == now) return;
  forks_ = now;
  (void)mutex_.release();
  mutex_ = std::make_unique<std::mutex>();
  was_cut_off_ = was_cut_off_ || holder_ != std::thread::id();
  holder_ = {};
  outer_ = nullptr;
}

bool SessionLock::acquire() {
  begin_anew_after_fork();
  if (holder_ == std::this_thread::get_id()) return false;
  if (!mutex_->try_lock()) {
    const GilRelease unlocked;
    mutex_->lock();
  }
  holder_ = std::this_thread::get_id();
  outer_ = held;
  held = this;
  return true;
}

void SessionLock::release() {
  SessionLock** link = &held;
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == this) *link = outer_;
  outer_ = nullptr;
  holder_ = {};
  mutex_->unlock();
}

bool SessionLock::was_cut_off() {
  begin_anew_after_fork();
  return was_cut_off_;
}

Session* SessionLock::innermost() { return held != nullptr ? &held->session_ : nullptr; }

}  // namespace rushlight::python
