// The kinds of values. Their numbers are those of rushlight::Tag.
#pragma once

#include <executorch/runtime/core/defines.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"

#undef None  // a macro of X11

#define EXECUTORCH_FORALL_TAGS(_) \
  _(None)                         \
  _(Tensor)                       \
  _(String)                       \
  _(Double)                       \
  _(Int)                          \
  _(Bool)                         \
  _(ListBool)                     \
  _(ListDouble)                   \
  _(ListInt)                      \
  _(ListTensor)                   \
  _(ListScalar)                   \
  _(ListOptionalTensor)

namespace executorch::runtime {

enum class Tag : uint32_t {
#define ET_TAG_(name) name,
  EXECUTORCH_FORALL_TAGS(ET_TAG_)
#undef ET_TAG_
};

static_assert(static_cast<uint8_t>(::rushlight::Tag::OptionalTensorList) ==
                  static_cast<uint32_t>(Tag::ListOptionalTensor),
              "tags have the numbers of the format");

inline const char* tag_to_string(Tag tag) {
  switch (tag) {
#define ET_TAG_(name) \
  case Tag::name:     \
    return #name;
    EXECUTORCH_FORALL_TAGS(ET_TAG_)
#undef ET_TAG_
  }
  return "Unknown";
}

// Writes the name, cut to `size` bytes with its closing NUL. Returns the length of the whole name.
inline size_t tag_to_string(Tag tag, char* buffer, size_t size) {
  const char* name = tag_to_string(tag);
  size_t n = 0;
  for (; name[n] != '\0'; ++n) {
    if (n + 1 < size) buffer[n] = name[n];
  }
  if (size > 0) buffer[n < size ? n : size - 1] = '\0';
  return n;
}
constexpr size_t kTagNameBufferSize = 19;

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Tag;
}  // namespace torch::executor
