// ET_LOG: a line for the platform's log, formatted as by printf.
#pragma once

#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/types.h>

#include <cinttypes>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifndef ET_MIN_LOG_LEVEL
#define ET_MIN_LOG_LEVEL Info
#endif
#ifndef ET_LOG_ENABLED
#define ET_LOG_ENABLED 1
#endif

namespace executorch::runtime {

enum class LogLevel : uint8_t { Debug, Info, Error, Fatal, NumLevels };

namespace internal {

et_timestamp_t get_log_timestamp();
ET_PRINTFLIKE(6, 0)
void vlogf(LogLevel level, et_timestamp_t timestamp, const char* filename, const char* function,
           size_t line, const char* format, va_list args);
ET_PRINTFLIKE(6, 7)
inline void logf([[maybe_unused]] LogLevel level, [[maybe_unused]] et_timestamp_t timestamp,
                 [[maybe_unused]] const char* filename, [[maybe_unused]] const char* function,
                 [[maybe_unused]] size_t line, [[maybe_unused]] const char* format, ...) {
#if ET_LOG_ENABLED
  va_list args;
  va_start(args, format);
  vlogf(level, timestamp, filename, function, line, format, args);
  va_end(args);
#endif
}

}  // namespace internal
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::LogLevel;
}  // namespace torch::executor

#if ET_LOG_ENABLED
#define ET_LOG(level_, format_, ...)                                                              \
  do {                                                                                            \
    if (::executorch::runtime::LogLevel::level_ >=                                                \
        ::executorch::runtime::LogLevel::ET_MIN_LOG_LEVEL) {                                      \
      ::executorch::runtime::internal::logf(::executorch::runtime::LogLevel::level_,              \
                                            ::executorch::runtime::internal::get_log_timestamp(), \
                                            ET_SHORT_FILENAME, ET_FUNCTION, ET_LINE,              \
                                            format_, ##__VA_ARGS__);                              \
    }                                                                                             \
  } while (0)
#define ET_CHECK_OR_LOG_ERROR(condition_, format_, ...)       \
  do {                                                        \
    if (!(condition_)) ET_LOG(Error, format_, ##__VA_ARGS__); \
  } while (0)
#else
#define ET_LOG(level_, format_, ...) ((void)0)
#define ET_CHECK_OR_LOG_ERROR(condition_, format_, ...) ((void)0)
#endif
