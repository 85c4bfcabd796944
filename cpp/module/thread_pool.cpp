#include "rushlight/module/thread_pool.h"

#include <atomic>

#include "rushlight/core/message.h"
#include "rushlight/method/running_method.h"

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

thread_local bool t_alone = false;

void run_in_place(int64_t items, int64_t grain, Workers::Task task, void* data) {
  for (int64_t begin = 0; begin < items; begin += grain) {
    task(data, begin, items - begin < grain ? items : begin + grain);
  }
}

#if defined(RUSHLIGHT_HAS_POOL)

constexpr size_t kCacheLine = 64;
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr uint64_t kSpinNs = 50'000;  // longer than the gap between two kernels
constexpr int kMaxPolls = 100'000;    // in case the clock stands still

inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// True as soon as `ready` returns true, false after kSpinNs.
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

// How the caller's thread rounds and treats subnormals. The pool's threads use the same settings,
// so that a result does not depend on which thread computed it.
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

// The state that all threads share, in one word, so that one compare-and-swap can join a region
// only while it is open. It has a bit that tells threads to end, the region's number, how many
// threads may work on it (none if it is closed), and how many of the pool's threads have joined it.
constexpr uint64_t kEnd = uint64_t{1} << 63;
constexpr uint64_t kOneRegion = uint64_t{1} << 32;
constexpr uint64_t kOneSeat = uint64_t{1} << 16;
constexpr uint64_t kJoined = kOneSeat - 1;
constexpr int64_t kMaxChunks = int64_t{1} << 31;

uint32_t number_of(uint64_t ticket) { return static_cast<uint32_t>((ticket & ~kEnd) / kOneRegion); }
size_t seats_of(uint64_t ticket) { return ticket % kOneRegion / kOneSeat; }

// One call of run().
struct Region {
  int64_t items = 0;
  int64_t grain = 1;
  Workers::Task task = nullptr;
  void* data = nullptr;
  const Method* method = nullptr;  // that the work is for
  uint32_t number = 0;
  uint32_t seats = 1;  // number of threads, including the caller's

  uint32_t chunks() const { return static_cast<uint32_t>((items - 1) / grain + 1); }
  // The index of the first chunk of a thread's own share.
  uint32_t share(size_t seat) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(chunks()) * seat / seats);
  }
  void do_chunk(uint32_t chunk) const {
    const int64_t begin = chunk * grain;
    task(data, begin, items - begin < grain ? items : begin + grain);
  }
};

// The progress of a thread in its share of the chunks. Threads that have finished take chunks from
// others' shares. Since a thread always starts with the same part of the items, its cache holds
// what it wrote in the previous region. Each share has its own cache line, as does everything that
// only one thread writes.
class alignas(kCacheLine) Share {
 public:
  // False if there is no chunk left among the region's chunks from `begin` to `end`.
  bool take(uint32_t region, uint32_t begin, uint32_t end, uint32_t* chunk) {
    uint64_t state = state_.load(std::memory_order_relaxed);
    for (;;) {
      *chunk = state / kOneRegion == region ? static_cast<uint32_t>(state) : begin;
      if (*chunk >= end) return false;
      const uint64_t next = region * kOneRegion + *chunk + 1;
      if (state_.compare_exchange_weak(state, next, std::memory_order_relaxed)) return true;
    }
  }
  void forget() { state_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> state_{0};  // a region's number, and its next chunk
};

class Pool;

struct alignas(kCacheLine) Helper {
  Pool* pool = nullptr;
  size_t seat = 0;      // from 1 on; the caller has seat 0
  uint32_t region = 0;  // the last one that it joined
  pthread_t thread = {};
  std::atomic<bool> sleeps{false};
  pthread_cond_t is_woken = PTHREAD_COND_INITIALIZER;

  bool wants(uint64_t ticket) const {
    return (ticket & kEnd) != 0 || (seats_of(ticket) > seat && number_of(ticket) != region);
  }
};

// Padded on purpose, see Share.
class Pool {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Starts threads until there are `n`, or until the system refuses.
  void grow(size_t n);
  size_t wanted() const { return wanted_.load(std::memory_order_acquire); }
  // Returns false and does nothing if another region owns the pool.
  bool run(int64_t items, int64_t grain, Workers::Task task, void* data, size_t threads);
  // Ends and joins the threads. Later regions run in place.
  void close();

 private:
  static void* thread_main(void* helper);
  void help(Helper* helper);
  bool join(Helper* helper);
  void help_with(const Region& region, size_t seat);
  void leave();
  uint32_t next_number();
  void work(const Region& region, size_t seat);
  void wake(size_t seats);
  void sleep_until_woken(Helper* helper);
  void wait_for_others();

  std::atomic<bool> owned_{false};
  uint64_t joined_ = 0;  // number of all threads that ever joined
  // The region is written before the ticket, so a thread that sees the ticket sees both.
  alignas(kCacheLine) std::atomic<uint64_t> ticket_{0};
  Region region_;
  alignas(kCacheLine) std::atomic<uint64_t> left_{0};  // number of those that have left
  alignas(kCacheLine) std::atomic<uint64_t> float_mode_{0};
  Share shares_[PoolWorkers::kMaxThreads];

  // The lock is taken only by threads that go to sleep, or have another one to wake.
  alignas(kCacheLine) std::atomic<bool> owner_sleeps_{false};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t all_left_ = PTHREAD_COND_INITIALIZER;

  pthread_mutex_t growing_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<size_t> wanted_{0};
  std::atomic<size_t> n_threads_{0};
  Helper helpers_[PoolWorkers::kMaxThreads];
};

// The pool is in static memory and is never destroyed: a thread that runs a method while the
// program ends still finds it, closed. The child of a fork creates a new one in its place.
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
    // Signals are for the program's own threads, but for those that a thread raises by its faults.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    while (have < n) {
      Helper& helper = helpers_[have];
      helper.pool = this;
      helper.seat = have + 1;
      if (pthread_create(&helper.thread, &attributes, &thread_main, &helper) != 0) break;
      n_threads_.store(++have, std::memory_order_release);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    wanted_.store(n, std::memory_order_release);  // even if fewer were started: no second try
    if (have < n) {
      warn(
          "threads=%zu: the system started %zu of the %zu threads beside the caller's (see ulimit "
          "-u and -v); those there are do the work",
          n + 1, have, n);
    }
  }
  pthread_mutex_unlock(&growing_);
}

void* Pool::thread_main(void* helper) {
  auto* self = static_cast<Helper*>(helper);
  self->pool->help(self);
  return nullptr;
}

void Pool::help(Helper* helper) {
  const auto is_wanted = [&] { return helper->wants(ticket_.load(std::memory_order_relaxed)); };
  for (;;) {
    if (!spin_until(is_wanted)) sleep_until_woken(helper);
    if (join(helper)) {
      set_float_mode(float_mode_.load(std::memory_order_relaxed));
      help_with(Region(region_), helper->seat);
      leave();
    } else if ((ticket_.load(std::memory_order_relaxed) & kEnd) != 0) {
      return;
    }
  }
}

void Pool::help_with(const Region& region, size_t seat) {
  const RunningMethod running(region.method);
  work(region, seat);
}

bool Pool::join(Helper* helper) {
  uint64_t ticket = ticket_.load(std::memory_order_relaxed);
  while (helper->wants(ticket) && (ticket & kEnd) == 0) {
    if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      helper->region = number_of(ticket);
      return true;
    }
  }
  return false;
}

// Processes the thread's own share, then the rest of the others'.
void Pool::work(const Region& region, size_t seat) {
  uint32_t chunk = 0;
  for (size_t k = 0; k < region.seats; ++k) {
    const size_t i = (seat + k) % region.seats;
    const uint32_t begin = region.share(i);
    const uint32_t end = region.share(i + 1);
    while (shares_[i].take(region.number, begin, end, &chunk)) region.do_chunk(chunk);
  }
}

// After the greatest number the numbers start at 1 again, and all shares are reset.
uint32_t Pool::next_number() {
  const uint32_t number = number_of(ticket_.load(std::memory_order_relaxed) + kOneRegion);
  if (number != 0) return number;
  for (Share& share : shares_) share.forget();
  return 1;
}

bool Pool::run(int64_t items, int64_t grain, Workers::Task task, void* data, size_t threads) {
  if (owned_.exchange(true, std::memory_order_acquire)) return false;
  Region region = {items, grain, task, data, running_method()};
  const uint32_t chunks = region.chunks();
  region.seats = chunks < threads ? chunks : static_cast<uint32_t>(threads);
  region.number = next_number();
  const uint64_t mode = float_mode();
  if (float_mode_.load(std::memory_order_relaxed) != mode) {
    float_mode_.store(mode, std::memory_order_relaxed);
  }
  region_ = region;
  const uint64_t closed = region.number * kOneRegion;
  ticket_.store(closed + region.seats * kOneSeat, std::memory_order_seq_cst);
  wake(region.seats);
  work(region, 0);
  joined_ += ticket_.exchange(closed, std::memory_order_acq_rel) & kJoined;
  wait_for_others();
  owned_.store(false, std::memory_order_release);
  return true;
}

void Pool::leave() {
  left_.fetch_add(1, std::memory_order_seq_cst);
  if (!owner_sleeps_.load(std::memory_order_seq_cst)) return;
  pthread_mutex_lock(&mutex_);
  pthread_cond_signal(&all_left_);
  pthread_mutex_unlock(&mutex_);
}

// Waits until all threads that joined have left.
void Pool::wait_for_others() {
  if (spin_until([this] { return left_.load(std::memory_order_acquire) == joined_; })) return;
  pthread_mutex_lock(&mutex_);
  owner_sleeps_.store(true, std::memory_order_seq_cst);
  while (left_.load(std::memory_order_seq_cst) != joined_) pthread_cond_wait(&all_left_, &mutex_);
  owner_sleeps_.store(false, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex_);
}

// A thread that goes to sleep sets its flag before it reads the ticket again, and a region sets the
// ticket before it reads the flags: so at least one of them sees the other. A thread that is woken
// looks for work again, even if its region has ended, because the next one is likely to follow
// soon.
void Pool::sleep_until_woken(Helper* helper) {
  pthread_mutex_lock(&mutex_);
  helper->sleeps.store(true, std::memory_order_seq_cst);
  if (helper->wants(ticket_.load(std::memory_order_seq_cst))) {
    helper->sleeps.store(false, std::memory_order_relaxed);
  }
  while (helper->sleeps.load(std::memory_order_relaxed)) {
    pthread_cond_wait(&helper->is_woken, &mutex_);
  }
  pthread_mutex_unlock(&mutex_);
}

// Wakes the sleeping threads that have a seat.
void Pool::wake(size_t seats) {
  const size_t helpers = n_threads_.load(std::memory_order_acquire);
  for (size_t i = 0; i < helpers && i + 1 < seats; ++i) {
    Helper& helper = helpers_[i];
    if (!helper.sleeps.load(std::memory_order_seq_cst)) continue;
    pthread_mutex_lock(&mutex_);
    helper.sleeps.store(false, std::memory_order_relaxed);
    pthread_cond_signal(&helper.is_woken);
    pthread_mutex_unlock(&mutex_);
  }
}

void Pool::close() {
  while (owned_.exchange(true, std::memory_order_acquire)) relax();  // and never released
  pthread_mutex_lock(&growing_);
  ticket_.store(kEnd, std::memory_order_seq_cst);
  const size_t n = n_threads_.load(std::memory_order_relaxed);
  wake(n + 1);
  for (size_t i = 0; i < n; ++i) pthread_join(helpers_[i].thread, nullptr);
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
  if (count_ > 1 && items > grain && (items - 1) / grain < kMaxChunks && !t_alone) {
    start();  // the child of a fork has no threads yet
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

bool runs_alone() { return t_alone; }

void set_runs_alone(bool alone) { t_alone = alone; }

size_t threads_for(size_t asked) {
  static std::atomic<size_t> reported{0};  // the greatest number that was reported
  const size_t cores = usable_cores();
  const size_t count = PoolWorkers(asked == 0 ? cores : asked).count();
  size_t before = reported.load(std::memory_order_relaxed);
  while ((asked > cores || asked > count) && asked > before) {
    if (!reported.compare_exchange_weak(before, asked, std::memory_order_relaxed)) continue;
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
