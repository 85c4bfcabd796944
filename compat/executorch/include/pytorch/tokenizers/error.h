// Why a tokenizer fails, and the checks that return it.
#pragma once

#include <pytorch/tokenizers/log.h>
#include <stdint.h>

namespace tokenizers {

using error_code_t = uint32_t;

enum class Error : error_code_t {
  Ok = 0x00,
  Internal = 0x01,
  Uninitialized = 0x02,  // nothing was loaded
  OutOfRange = 0x03,     // there is no such token
  LoadFailure = 0x04,
  EncodeFailure = 0x05,
  Base64DecodeFailure = 0x06,
  ParseFailure = 0x07,
  DecodeFailure = 0x08,
  RegexFailure = 0x09,
};

}  // namespace tokenizers

#define TK_CHECK_OR_RETURN_ERROR(condition_, error_, ...) \
  do {                                                    \
    if (!(condition_)) {                                  \
      TK_LOG(Error, __VA_ARGS__);                         \
      return ::tokenizers::Error::error_;                 \
    }                                                     \
  } while (0)

#define TK_CHECK_OK_OR_RETURN_ERROR(error_)                     \
  do {                                                          \
    const auto tk_error_ = (error_);                            \
    if (tk_error_ != ::tokenizers::Error::Ok) return tk_error_; \
  } while (0)
