// The runtime's log, kept until `rushlight.runtime` makes Python warnings of it: a line may come
// from a thread without the interpreter's lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "rushlight/platform/platform.h"

namespace rushlight::python {

namespace {

constexpr size_t kMaxLines = 64;  // those after them are dropped

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
};

Log& kept() {
  static Log* const log = new Log;  // never destroyed: threads may end after the module
  return *log;
}

void keep_line(LogLevel, const char* text, size_t length) {
  Log& log = kept();
  const std::lock_guard<std::mutex> lock(log.mutex);
  if (log.lines.size() < kMaxLines) log.lines.emplace_back(text, length);
}

std::vector<std::string> take_log() {
  Log& log = kept();
  const std::lock_guard<std::mutex> lock(log.mutex);
  return std::exchange(log.lines, {});
}

}  // namespace

void init_log(nb::module_& m) {
#if defined(__unix__) || defined(__APPLE__)
  // The child of a fork must not find the lock held by a thread that it has not.
  pthread_atfork([] { kept().mutex.lock(); }, [] { kept().mutex.unlock(); },
                 [] { kept().mutex.unlock(); });
#endif
  Platform platform = {};
  platform.log = keep_line;
  set_platform(platform);
  m.def("take_log", &take_log, "The lines of the runtime's log since the last call.");
}

}  // namespace rushlight::python
