// What runners of language models share.
#pragma once

#include <executorch/extension/llm/runner/constants.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/compiler.h>

#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdio>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/resource.h>
#endif

// The value of a tokenizer's Result, or return of InvalidArgument after a line for the log.
#define ET_UNWRAP_TOKENIZER(result_)                              \
  ({                                                              \
    auto et_tokenizer_result_ = (result_);                        \
    ET_CHECK_TK_OK_OR_RETURN_ERROR(et_tokenizer_result_.error()); \
    std::move(*et_tokenizer_result_);                             \
  })
#define ET_CHECK_TK_OK_OR_RETURN_ERROR(error_, ...)                                              \
  do {                                                                                           \
    const auto et_tokenizer_error_ = (error_);                                                   \
    if (et_tokenizer_error_ != ::tokenizers::Error::Ok) {                                        \
      ET_LOG(Error, "the tokenizer fails with error %u",                                         \
             static_cast<unsigned>(et_tokenizer_error_));                                        \
      ET_CHECK_OK_OR_RETURN_ERROR(::executorch::runtime::Error::InvalidArgument, ##__VA_ARGS__); \
    }                                                                                            \
  } while (0)

namespace executorch::extension::llm {

// Prints a piece of text, but not one that is a control character alone.
inline void safe_printf(const char* piece) {
  if (piece == nullptr || piece[0] == '\0') return;
  const auto first = static_cast<unsigned char>(piece[0]);
  if (piece[1] == '\0' && std::isprint(first) == 0 && std::isspace(first) == 0) return;
  std::fputs(piece, stdout);
}

inline long time_in_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// The most memory that the process had so far; 0 where the system does not say.
inline size_t get_rss_bytes() {
#if defined(__APPLE__)
  constexpr size_t kUnit = 1;
#elif defined(__unix__)
  constexpr size_t kUnit = 1024;
#endif
#if defined(__unix__) || defined(__APPLE__)
  rusage use = {};
  if (getrusage(RUSAGE_SELF, &use) == 0) return static_cast<size_t>(use.ru_maxrss) * kUnit;
#endif
  return 0;
}

}  // namespace executorch::extension::llm

namespace torch::executor::util {
using ::executorch::extension::llm::get_rss_bytes;
using ::executorch::extension::llm::safe_printf;
using ::executorch::extension::llm::time_in_ms;
}  // namespace torch::executor::util
