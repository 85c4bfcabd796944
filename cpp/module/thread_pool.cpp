#include "rushlight/module/thread_pool.h"

#include <atomic>

#include "rushlight/core/message.h"

#if (defined(__unix__) || defined(__APPLE__)) && !defined(RUSHLIGHT_NO_THREADS)
#define RUSHLIGHT_HAS_POOL 1
#include <pthread.h>
#include <signal.h>

#include <new>

#include "rushlight/platform/platform.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#endif

namespace rushlight {
namespace {

void run_in_place(int64_t items, int64_t grain, Workers::Task task, void* data) {
  for (int64_t begin = 0; begin < items; begin += grain) {
    task(data, begin, items - begin < grain ? items : begin + grain);
  }
}

#if defined(RUSHLIGHT_HAS_POOL)

constexpr size_t kCacheLine = 64;
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr uint64_t kSpinNs = 50'000;  // longer than the gap between two kernels
constexpr int kMaxPolls = 100'000;    // should the clock stand still

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// True as soon as `ready` is, false after kSpinNs.
template <class Ready>
bool spin_until(Ready ready) {
  if (ready()) return true;
  const uint64_t end = now_ns() + kSpinNs;
  for (int polls = 0; polls < kMaxPolls; ++polls) {
    for (int k = 0; k < 16; ++k) {
      relax();
      if (ready()) return true;
    }
    if (now_ns() >= end) return false;
  }
  return false;
}

// How the caller's thread rounds and flushes: a thread of the pool works in the same way, so that a
// result does not depend on which of them computed it.
#if defined(__x86_64__)
uint64_t float_mode() { return _mm_getcsr() & ~uint64_t{_MM_EXCEPT_MASK}; }
void set_float_mode(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
uint64_t float_mode() {
  uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_float_mode(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode)); }
#else
uint64_t float_mode() { return 0; }
void set_float_mode(uint64_t) {}
#endif

// What all threads look at, in one word, so that one compare-and-swap takes a seat and a chunk: the
// seats that are left for threads of the pool, the chunks that nobody has taken, and whether the
// threads shall end.
constexpr uint64_t kOneSeat = uint64_t{1} << 48;
constexpr uint64_t kEnd = uint64_t{1} << 63;
constexpr uint64_t kChunks = kOneSeat - 1;
constexpr uint64_t kSeats = kEnd - kOneSeat;

bool has_place(uint64_t ticket) { return (ticket & kSeats) != 0 && (ticket & kChunks) != 0; }

// Padded on purpose: what one thread writes and others spin on has a cache line of its own.
class Pool {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Starts threads until there are `n`, or the system has no more.
  void grow(size_t n);
  size_t wanted() const { return wanted_.load(std::memory_order_acquire); }
  // False, and nothing is done, if another region owns the pool.
  bool run(int64_t items, int64_t grain, Workers::Task task, void* data, size_t threads);
  // Ends and joins the threads; from here on every region works in place.
  void close();

 private:
  static void* thread_main(void* pool);
  void help();
  bool take_seat(uint64_t* ticket);
  bool take_chunk(uint64_t* ticket);
  int64_t work(uint64_t ticket);
  void finish(int64_t n_chunks);
  void wake(uint64_t seats);
  void sleep_until_place();
  void wait_for_others();

  // The region; plain members are written before its ticket and read after a chunk is taken.
  std::atomic<bool> owned_{false};
  int64_t items_ = 0;
  int64_t grain_ = 1;
  Workers::Task task_ = nullptr;
  void* data_ = nullptr;
  uint64_t n_chunks_ = 0;
  uint64_t float_mode_ = 0;
  alignas(kCacheLine) std::atomic<uint64_t> ticket_{0};
  alignas(kCacheLine) std::atomic<int64_t> undone_{0};  // chunks

  // Only who sleeps, or has somebody to wake, takes the lock.
  alignas(kCacheLine) std::atomic<uint64_t> sleepers_{0};
  std::atomic<bool> owner_sleeps_{false};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t has_place_ = PTHREAD_COND_INITIALIZER;
  pthread_cond_t all_done_ = PTHREAD_COND_INITIALIZER;

  pthread_mutex_t growing_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<size_t> wanted_{0};
  std::atomic<size_t> n_threads_{0};
  pthread_t threads_[PoolWorkers::kMaxThreads] = {};
};

// The pool lies in static memory and is never destroyed: a thread that runs a method while the
// program ends still finds it, closed. A child of a fork begins with a new one in its place.
alignas(Pool) unsigned char g_memory[sizeof(Pool)];

Pool& pool() {
  struct Life {
    Life() {
      new (g_memory) Pool;
      pthread_atfork(nullptr, nullptr, [] { new (g_memory) Pool; });
    }
    ~Life() { reinterpret_cast<Pool*>(g_memory)->close(); }
  };
  static const Life life;
  return *reinterpret_cast<Pool*>(g_memory);
}

void Pool::grow(size_t n) {
  pthread_mutex_lock(&growing_);
  size_t have = n_threads_.load(std::memory_order_relaxed);
  const bool closed = (ticket_.load(std::memory_order_relaxed) & kEnd) != 0;
  if (n > wanted() && !closed) {
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    while (have < n && pthread_create(&threads_[have], &attributes, &thread_main, this) == 0) {
      n_threads_.store(++have, std::memory_order_relaxed);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    wanted_.store(n, std::memory_order_release);  // also if there are fewer: asked for once
    if (have < n) {
      warn(
          "threads=%zu: the system started %zu of the %zu threads beside the caller's (see ulimit "
          "-u and -v); those there are do the work",
          n + 1, have, n);
    }
  }
  pthread_mutex_unlock(&growing_);
}

void* Pool::thread_main(void* pool) {
  static_cast<Pool*>(pool)->help();
  return nullptr;
}

void Pool::help() {
  uint64_t ticket = 0;
  for (;;) {
    const auto is_wanted = [this] {
      const uint64_t now = ticket_.load(std::memory_order_relaxed);
      return has_place(now) || (now & kEnd) != 0;
    };
    if (!spin_until(is_wanted)) sleep_until_place();
    if (take_seat(&ticket)) {
      set_float_mode(float_mode_);
      finish(work(ticket));
    } else if ((ticket & kEnd) != 0) {
      return;
    }
  }
}

// Takes a seat and a chunk; *ticket is what was there before.
bool Pool::take_seat(uint64_t* ticket) {
  *ticket = ticket_.load(std::memory_order_relaxed);
  while (has_place(*ticket) && (*ticket & kEnd) == 0) {
    const uint64_t taken = *ticket - kOneSeat - 1;
    if (ticket_.compare_exchange_weak(*ticket, taken, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool Pool::take_chunk(uint64_t* ticket) {
  *ticket = ticket_.load(std::memory_order_relaxed);
  while ((*ticket & kChunks) != 0) {
    if (ticket_.compare_exchange_weak(*ticket, *ticket - 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// Does the chunk that `ticket` stands for and further ones until none is left; how many.
int64_t Pool::work(uint64_t ticket) {
  int64_t n_chunks = 0;
  do {
    const auto chunk = static_cast<int64_t>(n_chunks_ - (ticket & kChunks));
    const int64_t begin = chunk * grain_;
    task_(data_, begin, items_ - begin < grain_ ? items_ : begin + grain_);
    ++n_chunks;
  } while (take_chunk(&ticket));
  return n_chunks;
}

bool Pool::run(int64_t items, int64_t grain, Workers::Task task, void* data, size_t threads) {
  if (owned_.exchange(true, std::memory_order_acquire)) return false;
  items_ = items;
  grain_ = grain;
  task_ = task;
  data_ = data;
  n_chunks_ = static_cast<uint64_t>((items - 1) / grain + 1);
  float_mode_ = float_mode();
  undone_.store(static_cast<int64_t>(n_chunks_), std::memory_order_relaxed);
  // The caller takes the first chunk at once. No more seats than there are chunks for.
  const uint64_t left = n_chunks_ - 1;
  const uint64_t seats = left < threads - 1 ? left : threads - 1;
  ticket_.store(seats * kOneSeat + left, std::memory_order_seq_cst);
  wake(seats);
  finish(work(n_chunks_));
  wait_for_others();
  owned_.store(false, std::memory_order_release);
  return true;
}

void Pool::finish(int64_t n_chunks) {
  if (undone_.fetch_sub(n_chunks, std::memory_order_seq_cst) != n_chunks) return;
  if (!owner_sleeps_.load(std::memory_order_seq_cst)) return;
  pthread_mutex_lock(&mutex_);
  pthread_cond_signal(&all_done_);
  pthread_mutex_unlock(&mutex_);
}

void Pool::wait_for_others() {
  const auto done = [this] { return undone_.load(std::memory_order_acquire) == 0; };
  if (spin_until(done)) return;
  pthread_mutex_lock(&mutex_);
  owner_sleeps_.store(true, std::memory_order_seq_cst);
  while (undone_.load(std::memory_order_seq_cst) != 0) pthread_cond_wait(&all_done_, &mutex_);
  owner_sleeps_.store(false, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
}

// Whoever goes to sleep counts itself before it looks at the ticket once more, and a region sets
// the ticket before it looks at the count: one of them sees the other.
void Pool::sleep_until_place() {
  pthread_mutex_lock(&mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint64_t ticket = ticket_.load(std::memory_order_seq_cst);
    if (has_place(ticket) || (ticket & kEnd) != 0) break;
    pthread_cond_wait(&has_place_, &mutex_);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
}

// Wakes as many as there are seats that the threads which are awake leave.
void Pool::wake(uint64_t seats) {
  const uint64_t sleepers = sleepers_.load(std::memory_order_seq_cst);
  if (sleepers == 0) return;
  const uint64_t threads = n_threads_.load(std::memory_order_relaxed);
  const uint64_t awake = threads > sleepers ? threads - sleepers : 0;
  if (awake >= seats) return;
  pthread_mutex_lock(&mutex_);
  for (uint64_t n = awake; n < seats; ++n) pthread_cond_signal(&has_place_);
  pthread_mutex_unlock(&mutex_);
}

void Pool::close() {
  while (owned_.exchange(true, std::memory_order_acquire)) relax();  // and never given back
  pthread_mutex_lock(&growing_);
  ticket_.store(kEnd, std::memory_order_seq_cst);
  pthread_mutex_lock(&mutex_);
  pthread_cond_broadcast(&has_place_);
  pthread_mutex_unlock(&mutex_);
  const size_t n = n_threads_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < n; ++i) pthread_join(threads_[i], nullptr);
  n_threads_.store(0, std::memory_order_relaxed);
  pthread_mutex_unlock(&growing_);
}

#endif

}  // namespace

#if defined(RUSHLIGHT_HAS_POOL)

PoolWorkers::PoolWorkers(size_t threads)
    : count_(threads == 0 ? 1 : (threads < kMaxThreads ? threads : kMaxThreads)) {}

void PoolWorkers::start() {
  if (count_ > 1 && pool().wanted() < count_ - 1) pool().grow(count_ - 1);
}

void PoolWorkers::run(int64_t items, int64_t grain, Task task, void* data) {
  if (grain < 1) grain = 1;
  if (count_ > 1 && items > grain && (items - 1) / grain < static_cast<int64_t>(kChunks)) {
    start();  // none are there in the child of a fork
    if (pool().run(items, grain, task, data, count_)) return;
  }
  run_in_place(items, grain, task, data);
}

#else

PoolWorkers::PoolWorkers(size_t) : count_(1) {}

void PoolWorkers::start() {}

void PoolWorkers::run(int64_t items, int64_t grain, Task task, void* data) {
  run_in_place(items, grain < 1 ? 1 : grain, task, data);
}

#endif

size_t threads_for(size_t asked) {
  static std::atomic<size_t> said{0};  // the greatest number so far
  const size_t cores = usable_cores();
  const size_t count = PoolWorkers(asked == 0 ? cores : asked).count();
  size_t before = said.load(std::memory_order_relaxed);
  while ((asked > cores || asked > count) && asked > before) {
    if (!said.compare_exchange_weak(before, asked, std::memory_order_relaxed)) continue;
#if defined(RUSHLIGHT_HAS_POOL)
    warn(
        "threads=%zu: %zu are used; the cores that this process may use are %zu, and more threads "
        "than cores take turns, which is slower",
        asked, count, cores);
#else
    warn("threads=%zu: 1 is used, since this runtime was built without threads", asked);
#endif
    break;
  }
  return count;
}

}  // namespace rushlight
