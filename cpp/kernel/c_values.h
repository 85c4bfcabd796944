// Values, texts and structs of the plain C interfaces (abi/rl_value_v1.h), for the files that adapt
// backends and kernels of libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rushlight/abi/rl_value_v1.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::c_values {

constexpr uint32_t kMaxStruct = 4096;  // a greater size is no size

inline StringView view(rl_text_v1 text) {
  return text.data != nullptr ? StringView(text.data, text.size) : StringView();
}

inline rl_text_v1 text_of(StringView text) { return {text.data(), text.size()}; }

inline bool is_struct(const void* pointer, uint32_t size) {
  return pointer != nullptr && size >= 2 * sizeof(uint32_t) && size <= kMaxStruct;
}

// Copies as much of `from` as the reader knows, which is `size` bytes by its own account.
template <typename T>
void hand_over(T from, T* to) {
  const uint32_t known = to->size;
  from.size = known;
  if (known >= sizeof(T)) {
    *to = from;
  } else {
    std::memcpy(static_cast<void*>(to), &from, known);
  }
}

rl_value_v1 value_of(const Tensor& tensor);
rl_value_v1 value_of(const EValue& value);

// Sizes may only be read as far as a tensor can have them.
inline bool are_sizes(const int32_t* sizes, uint32_t rank) {
  return rank <= kMaxRank && (sizes != nullptr || rank == 0);
}

// The Status of a code that a library returned. A number that is no code of ours goes into the
// text; `who` returned it.
Status status_of(int32_t code, Message& message, const char* who);

}  // namespace rushlight::c_values
