// Options that an application gives to backends when it loads a program: a key with a bool, an
// integer or a text, for one backend and all methods of a program or for one of its methods. The
// limits are ExecuTorch's. Nothing is copied: keys, texts and spans belong to the caller, who keeps
// them for as long as methods are loaded with them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight {

struct BackendOption {
  enum class Kind : uint8_t { Bool, Int, String };

  static constexpr size_t kMaxKey = 63;
  static constexpr size_t kMaxText = 255;

  static BackendOption of_bool(StringView key, bool value) {
    return {key, Kind::Bool, value ? 1 : 0, {}};
  }
  static BackendOption of_int(StringView key, int64_t value) { return {key, Kind::Int, value, {}}; }
  static BackendOption of_text(StringView key, StringView value) {
    return {key, Kind::String, 0, value};
  }

  StringView key;
  Kind kind = Kind::Bool;
  int64_t i = 0;  // Int, and Bool as 0 or 1
  StringView text;
};

// The options of one delegate: those of its method hide its backend's with the same key.
class BackendOptions {
 public:
  BackendOptions() = default;
  BackendOptions(Span<const BackendOption> of_method, Span<const BackendOption> of_backend)
      : of_method_(of_method), of_backend_(of_backend) {}

  // nullptr if it was not set.
  const BackendOption* find(StringView key) const;
  // All, those of the method first; one that is hidden counts too. find() is what decides.
  size_t size() const { return of_method_.size() + of_backend_.size(); }
  const BackendOption& operator[](size_t i) const {
    return i < of_method_.size() ? of_method_[i] : of_backend_[i - of_method_.size()];
  }

 private:
  Span<const BackendOption> of_method_;
  Span<const BackendOption> of_backend_;
};

// The options of one load, for all its backends.
class BackendOptionsMap {
 public:
  static constexpr size_t kMaxBackends = 8;
  static constexpr size_t kMaxEntries = 32;  // a backend and a method are one
  static constexpr size_t kMaxId = 63;

  // Sets the options of `backend` for `method`, or for all methods if that is empty; replaces what
  // was set for the same two. InvalidArgument, and nothing changed, if there are too many, an id, a
  // key or a text is too long, or a key is empty or there twice: the message says which.
  Status set(StringView backend, Span<const BackendOption> options, Message& message,
             StringView method = {});
  BackendOptions of(StringView backend, StringView method) const;

  size_t size() const { return size_; }
  StringView backend(size_t i) const { return entries_[i].backend; }
  StringView method(size_t i) const { return entries_[i].method; }

 private:
  struct Entry {
    StringView backend;
    StringView method;  // empty: all
    Span<const BackendOption> options;
  };

  const Entry* find(StringView backend, StringView method) const;
  size_t count_backends(StringView with) const;

  Entry entries_[kMaxEntries];
  size_t size_ = 0;
};

}  // namespace rushlight
