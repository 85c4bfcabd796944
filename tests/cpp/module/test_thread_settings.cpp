// Numbers of threads that are impossible or useless: what the log says, and that kernels still
// work. The linker replaces the system's function by __wrap_pthread_create.
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/module/thread_pool.h"
#include "rushlight/platform/platform.h"

using namespace rushlight;

namespace {

int g_threads_left = 0;  // the number that the system starts
std::vector<std::string> g_lines;

void keep_line(LogLevel level, const char* text, size_t length) {
  CHECK(level == LogLevel::Warning);
  g_lines.emplace_back(text, length);
}

// Checks that one line was logged since the last call, and that it has these parts.
void check_said(const std::vector<std::string>& parts) {
  CHECK(g_lines.size() == 1);
  for (const std::string& part : parts) {
    const bool has_part = !g_lines.empty() && g_lines[0].find(part) != std::string::npos;
    if (!has_part) std::fprintf(stderr, "wanted: %s\n", part.c_str());
    CHECK(has_part);
  }
  g_lines.clear();
}

bool works(Workers& workers) {
  std::vector<int> seen(1000, 0);
  Message message;
  KernelContext context(message, nullptr, &workers);
  context.parallel(1000, 7, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (int count : seen) {
    if (count != 1) return false;
  }
  return true;
}

void test_numbers() {
  const size_t cores = usable_cores();
  CHECK(threads_for(0) == cores && threads_for(1) == 1 && threads_for(cores) == cores);
  CHECK(g_lines.empty());
  CHECK(threads_for(cores + 1) == cores + 1);
  check_said(
      {"threads=" + std::to_string(cores + 1) + ": " + std::to_string(cores + 1) + " are used",
       "may use are " + std::to_string(cores) + ","});
  CHECK(threads_for(cores + 1) == cores + 1);  // logged once
  CHECK(g_lines.empty());
  CHECK(threads_for(size_t{1} << 40) == PoolWorkers::kMaxThreads);
  check_said({"threads=1099511627776: 256 are used"});
}

void test_refused_threads() {
  PoolWorkers two(2);
  two.start();
  check_said({"threads=2: the system started 0 of the 1 threads"});
  CHECK(works(two));
  g_threads_left = 2;
  PoolWorkers four(4);
  four.start();
  check_said({"threads=4: the system started 2 of the 3 threads", "do the work"});
  CHECK(works(four) && works(two));
  four.start();  // logged, and not tried again
  CHECK(g_lines.empty());
  g_threads_left = 10;
  PoolWorkers five(5);
  five.start();
  CHECK(g_lines.empty() && g_threads_left == 8 && works(five));
}

}  // namespace

extern "C" {

int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument);

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument) {
  if (g_threads_left == 0) return EAGAIN;
  --g_threads_left;
  return __real_pthread_create(thread, attributes, start, argument);
}
}

int main() {
  Platform platform = {};
  platform.log = keep_line;
  set_platform(platform);
  test_numbers();
  test_refused_threads();
  return test::check_result();
}
