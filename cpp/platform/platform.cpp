#include "rushlight/platform/platform.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32) || defined(__EMSCRIPTEN__)
#define RUSHLIGHT_HOSTED 1
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

Platform g_platform = {default_now_ns, default_log, default_abort};  // constant-initialised

}  // namespace

void set_platform(const Platform& platform) {
  if (platform.now_ns != nullptr) g_platform.now_ns = platform.now_ns;
  if (platform.log != nullptr) g_platform.log = platform.log;
  if (platform.abort != nullptr) g_platform.abort = platform.abort;
}

uint64_t now_ns() { return g_platform.now_ns(); }

void log_line(LogLevel level, const char* text, size_t length) {
  g_platform.log(level, text, length);
}

void abort_program() {
  g_platform.abort();
  for (;;) {  // a function that returned all the same
  }
}

}  // namespace rushlight
