// ExecuTorch's trace is written through flatcc's emitter. Ours is written by the runtime itself,
// and what asks for the emitter is told so when it is compiled.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

typedef struct flatcc_builder flatcc_builder_t;

namespace executorch::etdump::internal {

template <typename Builder, typename Allocator>
int etdump_flatcc_custom_init(Builder*, Allocator*) {
  static_assert(sizeof(Builder*) == 0,
                "traces are not written by flatcc here: give ETDumpGen a buffer instead");
  return -1;
}

}  // namespace executorch::etdump::internal
