// What a kernel does about an argument that it cannot take.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#define ET_KERNEL_CHECK(context_, condition_, error_, return_) \
  do {                                                         \
    if (!(condition_)) {                                       \
      ET_LOG(Error, "Check failed (%s)", #condition_);         \
      (context_).fail(::executorch::runtime::Error::error_);   \
      return return_;                                          \
    }                                                          \
  } while (false)
#define ET_KERNEL_CHECK_MSG(context_, condition_, error_, return_, format_, ...) \
  do {                                                                           \
    if (!(condition_)) {                                                         \
      ET_LOG(Error, "Check failed (%s): " format_, #condition_, ##__VA_ARGS__);  \
      (context_).fail(::executorch::runtime::Error::error_);                     \
      return return_;                                                            \
    }                                                                            \
  } while (false)
