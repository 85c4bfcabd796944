// A view of JSON text, for the few values that the runtime reads from a program's named data. It
// finds values by key and index, without allocating and without trusting the text. Text that is not
// JSON, or a missing key, gives a value that is not present; the members of such a value are not
// present either.
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
  // The first member of an object that has this key.
  Json operator[](StringView key) const;
  // An element of an array.
  Json operator[](size_t index) const;
  // The number of items of an array; 0 for any other value.
  size_t size() const;
  // The value of an integer; -1 for any other value.
  int64_t number() const;
  // Writes the unescaped text of a string and a NUL, truncated to `size`. Returns its length.
  size_t text(char* buffer, size_t size) const;

 private:
  Json(const char* at, const char* end) : at_(at), end_(end) {}
  bool starts_with(char c) const { return present() && *at_ == c; }

  const char* at_ = nullptr;  // the first byte of the value
  const char* end_ = nullptr;
};

}  // namespace rushlight
