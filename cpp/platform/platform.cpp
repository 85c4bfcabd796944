#include "rushlight/platform/platform.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32) || defined(__EMSCRIPTEN__)
#define RUSHLIGHT_HOSTED 1
#include <cstdio>
#include <cstdlib>
#include <ctime>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

namespace rushlight {
namespace {

#if defined(_WIN32)
uint64_t default_now_ns() {
  LARGE_INTEGER frequency, count;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&count);
  const uint64_t ticks = static_cast<uint64_t>(count.QuadPart);
  const uint64_t per_second = static_cast<uint64_t>(frequency.QuadPart);
  return ticks / per_second * 1000000000u + ticks % per_second * 1000000000u / per_second;
}
#elif defined(RUSHLIGHT_HOSTED)
uint64_t default_now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
#else
uint64_t default_now_ns() { return 0; }
#endif

#if defined(RUSHLIGHT_HOSTED)
void default_log(LogLevel level, const char* text, size_t length) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  std::fprintf(stderr, "rushlight %s: %.*s\n", kNames[static_cast<size_t>(level)],
               static_cast<int>(length), text);
}
void default_abort() { std::abort(); }
#else
void default_log(LogLevel, const char*, size_t) {}
void default_abort() { __builtin_trap(); }
#endif

#if defined(__unix__) || defined(__APPLE__)
void default_release_pages(void* begin, void* end) {
#if defined(__linux__)
  constexpr int kAdvice = MADV_DONTNEED;
#else
  constexpr int kAdvice = MADV_FREE;
#endif
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const uintptr_t last = reinterpret_cast<uintptr_t>(end) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, kAdvice);
}
#else
void default_release_pages(void*, void*) {}
#endif

// Constant-initialised.
Platform g_platform = {default_now_ns, default_log, default_abort, default_release_pages};

}  // namespace

void set_platform(const Platform& platform) {
  if (platform.now_ns != nullptr) g_platform.now_ns = platform.now_ns;
  if (platform.log != nullptr) g_platform.log = platform.log;
  if (platform.abort != nullptr) g_platform.abort = platform.abort;
  if (platform.release_pages != nullptr) g_platform.release_pages = platform.release_pages;
}

uint64_t now_ns() { return g_platform.now_ns(); }

void log_line(LogLevel level, const char* text, size_t length) {
  g_platform.log(level, text, length);
}

void release_pages(void* begin, void* end) { g_platform.release_pages(begin, end); }

void abort_program() {
  g_platform.abort();
  for (;;) {  // a function that returned all the same
  }
}

}  // namespace rushlight
