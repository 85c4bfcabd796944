// Errors as values. A Status is a small code with ExecuTorch's numbers, but for Cancelled. The text
// that explains it is in the Message of the program or method that failed (core/message.h).
// Result<T> is a T, or the Status that says why there is none.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

namespace rushlight {

enum class Code : uint32_t {
  Ok = 0x00,
  Internal = 0x01,
  InvalidState = 0x02,
  EndOfMethod = 0x03,
  AlreadyLoaded = 0x04,
  NotSupported = 0x10,
  NotImplemented = 0x11,
  InvalidArgument = 0x12,
  InvalidType = 0x13,
  OperatorMissing = 0x14,
  RegistrationExceedingMaxKernels = 0x15,
  RegistrationAlreadyRegistered = 0x16,
  NotFound = 0x20,
  MemoryAllocationFailed = 0x21,
  AccessFailed = 0x22,
  InvalidProgram = 0x23,
  InvalidExternalData = 0x24,
  OutOfResources = 0x25,
  DelegateInvalidCompatibility = 0x30,
  DelegateMemoryAllocationFailed = 0x31,
  DelegateInvalidHandle = 0x32,
  Cancelled = 0x80,
};

const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(Code code) : code_(code) {}
  constexpr Code code() const { return code_; }
  constexpr bool ok() const { return code_ == Code::Ok; }

 private:
  Code code_ = Code::Ok;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(status) { assert(!status.ok()); }
  Result(Code code) : Result(Status(code)) {}

  bool ok() const { return status_.ok(); }
  Status status() const { return status_; }
  T& value() {
    assert(ok());
    return value_;
  }
  const T& value() const {
    assert(ok());
    return value_;
  }
  T* operator->() { return &value(); }
  T& operator*() { return value(); }

 private:
  T value_{};
  Status status_;
};

// Returns the Status of `expr` from the function if it is an error.
#define RL_TRY(expr)                         \
  do {                                       \
    ::rushlight::Status rl_status_ = (expr); \
    if (!rl_status_.ok()) return rl_status_; \
  } while (0)

}  // namespace rushlight
