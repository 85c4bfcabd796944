// A value, or the error that says why there is none. Reading the value of an error ends the
// program.
#pragma once

#include <executorch/runtime/core/result.h>
#include <pytorch/tokenizers/error.h>

#include <utility>
#include <variant>

namespace tokenizers {

template <typename T>
class Result final {
 public:
  using value_type = T;

  // An error that is Ok becomes Internal: there is no value.
  Result(Error error) : held_(error == Error::Ok ? Error::Internal : error) {}
  Result(const T& value) : held_(value) {}
  Result(T&& value) : held_(std::move(value)) {}
  Result(Result&&) noexcept = default;
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;

  bool ok() const { return std::holds_alternative<T>(held_); }
  Error error() const { return ok() ? Error::Ok : *std::get_if<Error>(&held_); }

  T& get() {
    ET_CHECK_MSG(ok(), "the result is the error %u", static_cast<unsigned>(error()));
    return *std::get_if<T>(&held_);
  }
  const T& get() const { return const_cast<Result*>(this)->get(); }
  T& operator*() & { return get(); }
  const T& operator*() const& { return get(); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &get(); }

 private:
  std::variant<Error, T> held_;
};

}  // namespace tokenizers

// The value of a Result, or return of its error; further arguments are a line for the log.
#define TK_UNWRAP(result_, ...)           \
  ({                                      \
    auto tk_result_ = (result_);          \
    if (!tk_result_.ok()) {               \
      ET_LOG_IF_GIVEN_(0, ##__VA_ARGS__); \
      return tk_result_.error();          \
    }                                     \
    std::move(tk_result_.get());          \
  })
