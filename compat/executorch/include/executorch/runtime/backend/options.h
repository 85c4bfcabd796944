// Options of backends: a key with a bool, an int or a text.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/span.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <variant>

namespace executorch::runtime {

static constexpr size_t kMaxOptionKeyLength = 64;
static constexpr size_t kMaxOptionValueLength = 256;

using OptionValue = std::variant<bool, int, std::array<char, kMaxOptionValueLength>>;

struct BackendOption {
  char key[kMaxOptionKeyLength]{};
  OptionValue value;
};

namespace internal {

// The value of an option as a bool, an int or a text. NotFound, or InvalidArgument for another
// type.
template <typename T>
Error read_option(Span<const BackendOption> options, const char* key, T& to) {
  for (const BackendOption& option : options) {
    if (std::strcmp(option.key, key) != 0) continue;
    if constexpr (std::is_same_v<T, const char*>) {
      const auto* text = std::get_if<std::array<char, kMaxOptionValueLength>>(&option.value);
      if (text == nullptr) return Error::InvalidArgument;
      to = text->data();
    } else {
      const T* value = std::get_if<T>(&option.value);
      if (value == nullptr) return Error::InvalidArgument;
      to = *value;
    }
    return Error::Ok;
  }
  return Error::NotFound;
}

}  // namespace internal

template <size_t MaxCapacity>
class BackendOptions {
 public:
  Span<BackendOption> view() { return {options_, size_}; }

  // Replaces a value of the same key. InvalidArgument if there is no room.
  template <size_t N>
  Error set_option(const char (&key)[N], bool value) noexcept {
    return set(key, value);
  }
  template <size_t N>
  Error set_option(const char (&key)[N], int value) noexcept {
    return set(key, value);
  }
  template <size_t N>
  Error set_option(const char (&key)[N], const char* value) noexcept {
    std::array<char, kMaxOptionValueLength> text{};
    std::snprintf(text.data(), text.size(), "%s", value);
    return set(key, text);
  }
  template <typename T, size_t N>
  Error get_option(const char (&key)[N], T& to) const {
    return internal::read_option(Span<const BackendOption>(options_, size_), key, to);
  }

 private:
  template <size_t N, typename T>
  Error set(const char (&key)[N], const T& value) {
    static_assert(N <= kMaxOptionKeyLength, "the key of an option has at most 63 characters");
    size_t at = 0;
    while (at < size_ && std::strcmp(options_[at].key, key) != 0) ++at;
    if (at == MaxCapacity) return Error::InvalidArgument;
    std::memcpy(options_[at].key, key, N);
    options_[at].value = value;
    if (at == size_) ++size_;
    return Error::Ok;
  }

  BackendOption options_[MaxCapacity];
  size_t size_ = 0;
};

}  // namespace executorch::runtime
