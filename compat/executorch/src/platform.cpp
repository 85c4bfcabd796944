// The platform layer: the C functions, which a program may define by itself, and the table over
// them.
#include <executorch/runtime/platform/abort.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <cstdlib>

#include "rushlight/core/message.h"
#include "rushlight/platform/platform.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <ctime>
#endif

extern "C" {

ET_WEAK void et_pal_init(void) {}

ET_WEAK void et_pal_abort(void) { std::abort(); }

// The runtime's own clock cannot be asked here, since it asks this one.
ET_WEAK et_timestamp_t et_pal_current_ticks(void) {
#if defined(_WIN32)
  LARGE_INTEGER frequency, count;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&count);
  return static_cast<et_timestamp_t>(static_cast<double>(count.QuadPart) * 1e9 /
                                     static_cast<double>(frequency.QuadPart));
#else
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<et_timestamp_t>(now.tv_sec) * 1000000000u +
         static_cast<et_timestamp_t>(now.tv_nsec);
#endif
}

ET_WEAK et_tick_ratio_t et_pal_ticks_to_ns_multiplier(void) { return {1, 1}; }

ET_WEAK void et_pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level,
                                     const char* filename, const char*, size_t line,
                                     const char* message, size_t length) {
  const unsigned long long ms = timestamp / 1000000u;
  std::fprintf(stderr, "%c %02llu:%02llu:%02llu.%03llu executorch:%s:%zu] %.*s\n",
               static_cast<char>(level), ms / 3600000u, ms / 60000u % 60u, ms / 1000u % 60u,
               ms % 1000u, filename, line, static_cast<int>(length), message);
}

ET_WEAK void* et_pal_allocate(size_t size) { return std::malloc(size); }

ET_WEAK void et_pal_free(void* memory) { std::free(memory); }

}  // extern "C"

namespace executorch::runtime {
namespace {

// Constant-initialised, so that static initialisers may log.
PalImpl g_platform = {et_pal_init,
                      et_pal_abort,
                      et_pal_current_ticks,
                      et_pal_ticks_to_ns_multiplier,
                      et_pal_emit_log_message,
                      et_pal_allocate,
                      et_pal_free,
                      __FILE__};

uint64_t now_ns() {
  const et_tick_ratio_t ratio = pal_ticks_to_ns_multiplier();
  return ratio.denominator == 0 ? 0 : pal_current_ticks() * ratio.numerator / ratio.denominator;
}

void log_line(::rushlight::LogLevel level, const char* text, size_t length) {
  static constexpr et_pal_log_level_t kLevels[] = {kDebug, kInfo, kInfo, kError};
  pal_emit_log_message(pal_current_ticks(), kLevels[static_cast<size_t>(level)], "rushlight", "", 0,
                       text, length);
}

}  // namespace

PalImpl PalImpl::create(pal_emit_log_message_method emit_log_message, const char* source_filename) {
  return create(nullptr, nullptr, nullptr, nullptr, emit_log_message, nullptr, nullptr,
                source_filename);
}

PalImpl PalImpl::create(pal_init_method init, pal_abort_method abort,
                        pal_current_ticks_method current_ticks,
                        pal_ticks_to_ns_multiplier_method ticks_to_ns_multiplier,
                        pal_emit_log_message_method emit_log_message, pal_allocate_method allocate,
                        pal_free_method free, const char* source_filename) {
  return {init,     abort, current_ticks,  ticks_to_ns_multiplier, emit_log_message,
          allocate, free,  source_filename};
}

bool register_pal(PalImpl impl) {
  if (impl.init != nullptr) g_platform.init = impl.init;
  if (impl.abort != nullptr) g_platform.abort = impl.abort;
  if (impl.current_ticks != nullptr) g_platform.current_ticks = impl.current_ticks;
  if (impl.ticks_to_ns_multiplier != nullptr) {
    g_platform.ticks_to_ns_multiplier = impl.ticks_to_ns_multiplier;
  }
  if (impl.emit_log_message != nullptr) g_platform.emit_log_message = impl.emit_log_message;
  if (impl.allocate != nullptr) g_platform.allocate = impl.allocate;
  if (impl.free != nullptr) g_platform.free = impl.free;
  g_platform.source_filename = impl.source_filename;
  return true;
}

const PalImpl* get_pal_impl() { return &g_platform; }

void pal_init() { g_platform.init(); }

void pal_abort() {
  g_platform.abort();
  std::abort();  // for a function that returned all the same
}

et_timestamp_t pal_current_ticks() { return g_platform.current_ticks(); }

et_tick_ratio_t pal_ticks_to_ns_multiplier() { return g_platform.ticks_to_ns_multiplier(); }

void pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level, const char* filename,
                          const char* function, size_t line, const char* message, size_t length) {
  g_platform.emit_log_message(timestamp, level, filename, function, line, message, length);
}

void* pal_allocate(size_t size) { return g_platform.allocate(size); }

void pal_free(void* memory) { g_platform.free(memory); }

void runtime_abort() { pal_abort(); }

void runtime_init() {
  static const bool done = [] {
    pal_init();
    ::rushlight::set_platform({now_ns, log_line, pal_abort, nullptr});
    return true;
  }();
  (void)done;
}

namespace internal {

et_timestamp_t get_log_timestamp() { return pal_current_ticks(); }

void vlogf(LogLevel level, et_timestamp_t timestamp, const char* filename, const char* function,
           size_t line, const char* format, va_list args) {
  static constexpr et_pal_log_level_t kLevels[] = {kDebug, kInfo, kError, kFatal};
  char text[::rushlight::Message::kCapacity + 128];
  const int length = std::vsnprintf(text, sizeof(text), format, args);
  if (length < 0) return;
  const size_t written =
      static_cast<size_t>(length) < sizeof(text) ? static_cast<size_t>(length) : sizeof(text) - 1;
  const bool known = level < LogLevel::NumLevels;
  pal_emit_log_message(timestamp, known ? kLevels[static_cast<size_t>(level)] : kUnknown, filename,
                       function, line, text, written);
}

}  // namespace internal
}  // namespace executorch::runtime
