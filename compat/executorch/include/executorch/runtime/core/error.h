// Error is the runtime's own code under its name here; and the checks that return one.
#pragma once

#include <executorch/runtime/platform/log.h>
#include <stdint.h>

#include "rushlight/core/status.h"

namespace executorch::runtime {

using error_code_t = uint32_t;
using Error = ::rushlight::Code;

constexpr const char* to_string(Error error) {
  switch (error) {
#define ET_ERROR_NAME_(name) \
  case Error::name:          \
    return "Error::" #name
    ET_ERROR_NAME_(Ok);
    ET_ERROR_NAME_(Internal);
    ET_ERROR_NAME_(InvalidState);
    ET_ERROR_NAME_(EndOfMethod);
    ET_ERROR_NAME_(AlreadyLoaded);
    ET_ERROR_NAME_(NotSupported);
    ET_ERROR_NAME_(NotImplemented);
    ET_ERROR_NAME_(InvalidArgument);
    ET_ERROR_NAME_(InvalidType);
    ET_ERROR_NAME_(OperatorMissing);
    ET_ERROR_NAME_(RegistrationExceedingMaxKernels);
    ET_ERROR_NAME_(RegistrationAlreadyRegistered);
    ET_ERROR_NAME_(NotFound);
    ET_ERROR_NAME_(MemoryAllocationFailed);
    ET_ERROR_NAME_(AccessFailed);
    ET_ERROR_NAME_(InvalidProgram);
    ET_ERROR_NAME_(InvalidExternalData);
    ET_ERROR_NAME_(OutOfResources);
    ET_ERROR_NAME_(DelegateInvalidCompatibility);
    ET_ERROR_NAME_(DelegateMemoryAllocationFailed);
    ET_ERROR_NAME_(DelegateInvalidHandle);
    ET_ERROR_NAME_(Cancelled);
#undef ET_ERROR_NAME_
  }
  return "Error::Unknown";
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Error;
using ::executorch::runtime::error_code_t;
}  // namespace torch::executor

#define ET_CHECK_OR_RETURN_ERROR(condition_, error_, format_, ...) \
  do {                                                             \
    if (!(condition_)) {                                           \
      ET_LOG(Error, format_, ##__VA_ARGS__);                       \
      return ::executorch::runtime::Error::error_;                 \
    }                                                              \
  } while (0)

#define ET_CHECK_OR_RETURN_FALSE(condition_, format_, ...)                      \
  do {                                                                          \
    if (!(condition_)) {                                                        \
      ET_LOG(Error, "Check failed (%s): " format_, #condition_, ##__VA_ARGS__); \
      return false;                                                             \
    }                                                                           \
  } while (0)

// ET_CHECK_OK_OR_RETURN_ERROR(error), or with a format and its arguments.
#define ET_CHECK_OK_OR_RETURN_ERROR(...)                                                        \
  ET_PICK_CHECK_OK_(__VA_ARGS__, ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_, \
                    ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_,              \
                    ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_, ET_CHECK_OK_SAYING_,              \
                    ET_CHECK_OK_ALONE_, )                                                       \
  (__VA_ARGS__)
#define ET_PICK_CHECK_OK_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, macro_, ...) macro_
#define ET_CHECK_OK_ALONE_(error_)                                       \
  do {                                                                   \
    const auto et_error_ = (error_);                                     \
    if (et_error_ != ::executorch::runtime::Error::Ok) return et_error_; \
  } while (0)
#define ET_CHECK_OK_SAYING_(error_, ...)                 \
  do {                                                   \
    const auto et_error_ = (error_);                     \
    if (et_error_ != ::executorch::runtime::Error::Ok) { \
      ET_LOG(Error, __VA_ARGS__);                        \
      return et_error_;                                  \
    }                                                    \
  } while (0)
