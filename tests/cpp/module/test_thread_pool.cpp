// The pool of threads: every item is processed once, with any number of threads, from several
// threads at once, from inside of a task, in the child of a fork, and after a sleep.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "check.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;

namespace {

// Calls `body` as a kernel does.
template <class Body>
void parallel(Workers& workers, int64_t items, int64_t grain, Body body) {
  Message message;
  KernelContext context(message, nullptr, &workers);
  context.parallel(items, grain, body);
}

bool each_once(Workers& workers, int64_t items, int64_t grain) {
  std::vector<uint8_t> seen(static_cast<size_t>(items), 0);
  std::atomic<bool> sound{true};
  parallel(workers, items, grain, [&](int64_t begin, int64_t end) {
    const bool whole = begin % grain == 0 && (end == items || end - begin == grain);
    if (!whole || begin >= end) sound = false;
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];  // one thread per item
  });
  for (uint8_t count : seen) sound = sound && count == 1;
  return sound;
}

void test_every_item_once() {
  for (size_t threads : {1, 2, 3, 4, 16}) {
    PoolWorkers workers(threads);
    CHECK(workers.count() == threads);
    for (int64_t items : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t grain : {1, 3, 64, 5000}) CHECK(each_once(workers, items, grain));
    }
  }
  CHECK(PoolWorkers(0).count() == 1);
  CHECK(PoolWorkers(100000).count() == PoolWorkers::kMaxThreads);
  CHECK(usable_cores() >= 1);
}

// A thread that runs alone does all of the work; others are not held back.
void test_alone() {
  PoolWorkers workers(4);
  CHECK(!runs_alone());
  set_runs_alone(true);
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<bool> is_alone{true};
  parallel(workers, 1000, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != own) is_alone = false;
  });
  CHECK(is_alone && each_once(workers, 1000, 3));
  std::thread([] { CHECK(!runs_alone()); }).join();
  set_runs_alone(false);
  CHECK(!runs_alone());
}

// Several threads work at the same time: each of the first tasks waits until the others have
// started.
void test_threads_work_at_once() {
  constexpr int kThreads = 4;
  PoolWorkers workers(kThreads);
  std::atomic<int> begun{0};
  parallel(workers, kThreads, 1, [&](int64_t, int64_t) {
    ++begun;
    while (begun < kThreads) std::this_thread::yield();
  });
  CHECK(begun == kThreads);
}

// A module of two threads gets two, even if the pool has more.
void test_size_of_module() {
  PoolWorkers workers(2);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  parallel(workers, 200, 1, [&](int64_t, int64_t) {
    const int now = ++inside;
    if (now > most) most = now;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    --inside;
  });
  CHECK(most <= 2);
}

void test_regions_at_once() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      PoolWorkers workers(static_cast<size_t>(2 + caller % 3));
      for (int round = 0; round < 300; ++round) {
        if (!each_once(workers, 100 + round, 7)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

void test_nested() {
  PoolWorkers workers(4);
  std::atomic<int64_t> sum{0};
  parallel(workers, 16, 1, [&](int64_t, int64_t) {
    parallel(workers, 10, 3, [&](int64_t begin, int64_t end) { sum += end - begin; });
  });
  CHECK(sum == 160);
}

void test_after_sleep() {
  PoolWorkers workers(4);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(each_once(workers, 1000, 10));
  }
}

// A sleeping pool uses no processor time.
void test_idle_pool_sleeps() {
  PoolWorkers workers(4);
  CHECK(each_once(workers, 1000, 10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 50);
}

// The child has none of its parent's threads and starts its own. All threads of the parent have
// started to work before the fork: AddressSanitizer allocates while it starts a thread, so a fork
// at that time would leave the child with a locked allocator.
void test_fork() {
  PoolWorkers workers(3);
  test_threads_work_at_once();
  CHECK(each_once(workers, 1000, 10));
  const pid_t child = fork();
  if (child == 0) {
    bool sound = true;
    for (int round = 0; round < 50; ++round) sound = sound && each_once(workers, 1000, 10);
    test_threads_work_at_once();
    std::exit(sound ? test::check_result() : 1);  // joins the threads
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(each_once(workers, 1000, 10));
}

// `test_thread_pool time`: prints the cost of a region that does nothing.
void print_cost() {
  for (size_t threads : {1, 2, 4}) {
    PoolWorkers workers(threads);
    const auto region = [](void*, int64_t, int64_t) {};
    double best = 1e9;
    for (int round = 0; round < 50; ++round) {
      constexpr int kRegions = 1000;
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRegions; ++i) {
        workers.run(static_cast<int64_t>(2 * threads), 1, region, nullptr);
      }
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - start;
      if (took.count() / kRegions < best) best = took.count() / kRegions;
    }
    std::printf("%zu threads: an empty region of %zu chunks takes %.0f ns\n", threads, 2 * threads,
                best);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "time") == 0) {
    print_cost();
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "fork") == 0) {
    test_fork();
    return test::check_result();
  }
  test_every_item_once();
  test_alone();
  test_threads_work_at_once();
  test_size_of_module();
  test_regions_at_once();
  test_nested();
  test_after_sleep();
  test_idle_pool_sleeps();
  return test::check_result();
}
