// A view of JSON text, for the little that the runtime reads of a program's named data: finds
// values by key and index, without memory and without trust. Text that is not JSON, or a missing
// key, gives a value that is not present, whose members are not present either.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

class Json {
 public:
  Json() = default;
  explicit Json(StringView text);

  bool present() const { return at_ != nullptr; }
  // The first member of an object with this key.
  Json operator[](StringView key) const;
  // An element of an array.
  Json operator[](size_t index) const;
  // How many items an array has; 0 for anything else.
  size_t size() const;
  // The value of a whole number; -1 for anything else.
  int64_t number() const;
  // Writes the text of a string, escapes undone, cut to `size` and closed with a NUL; returns its
  // length.
  size_t text(char* buffer, size_t size) const;

 private:
  Json(const char* at, const char* end) : at_(at), end_(end) {}
  bool starts_with(char c) const { return present() && *at_ == c; }

  const char* at_ = nullptr;  // the first byte of the value
  const char* end_ = nullptr;
};

}  // namespace rushlight
