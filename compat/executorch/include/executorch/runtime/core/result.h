// A value, or the error that says why there is none. Reading the value of an error ends the
// program, as in ExecuTorch; rushlight::Result needs a value that can be made from nothing, so this
// one is a type of its own.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/assert.h>

#include <new>
#include <utility>

namespace executorch::runtime {

template <typename T>
class Result final {
 public:
  using value_type = T;

  Result(const T& value) : value_(value), ok_(true) {}
  Result(T&& value) : value_(std::move(value)), ok_(true) {}
  // An error that is Ok becomes Internal: there is no value.
  Result(Error error) : error_(error == Error::Ok ? Error::Internal : error), ok_(false) {}
  Result(Result&& other) noexcept : ok_(other.ok_) {
    if (ok_) {
      new (const_cast<void*>(static_cast<const void*>(&value_))) T(std::move(other.value_));
    } else {
      error_ = other.error_;
    }
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (ok_) value_.~T();
  }

  ET_NODISCARD bool ok() const { return ok_; }
  ET_NODISCARD Error error() const { return ok_ ? Error::Ok : error_; }

  T& get() {
    ET_CHECK(ok_);
    return value_;
  }
  const T& get() const {
    ET_CHECK(ok_);
    return value_;
  }
  T& operator*() & { return get(); }
  const T& operator*() const& { return get(); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &get(); }

 private:
  union {
    T value_;
    Error error_;
  };
  const bool ok_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Result;
}  // namespace torch::executor

// Logs the arguments after the first, if there are any.
#define ET_LOG_IF_GIVEN_(...)                                                                  \
  ET_PICK_CHECK_OK_(__VA_ARGS__, ET_LOG_GIVEN_, ET_LOG_GIVEN_, ET_LOG_GIVEN_, ET_LOG_GIVEN_,   \
                    ET_LOG_GIVEN_, ET_LOG_GIVEN_, ET_LOG_GIVEN_, ET_LOG_GIVEN_, ET_LOG_GIVEN_, \
                    ET_LOG_NOTHING_, )                                                         \
  (__VA_ARGS__)
#define ET_LOG_GIVEN_(first_, ...) ET_LOG(Error, __VA_ARGS__)
#define ET_LOG_NOTHING_(first_) ((void)0)

// The value of a Result, or return of its error; further arguments are a line for the log.
#if ET_HAVE_GNU_STATEMENT_EXPRESSIONS
#define ET_UNWRAP(result_, ...)           \
  ({                                      \
    auto et_result_ = (result_);          \
    if (!et_result_.ok()) {               \
      ET_LOG_IF_GIVEN_(0, ##__VA_ARGS__); \
      return et_result_.error();          \
    }                                     \
    std::move(*et_result_);               \
  })
#endif
#define ET_ASSIGN_OR_RETURN(variable_, result_, ...) \
  auto et_result_of_##variable_ = (result_);         \
  if (!et_result_of_##variable_.ok()) {              \
    ET_LOG_IF_GIVEN_(0, ##__VA_ARGS__);              \
    return et_result_of_##variable_.error();         \
  }                                                  \
  auto variable_ = std::move(*et_result_of_##variable_)
