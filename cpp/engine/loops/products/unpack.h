// Inner loops that unpack weights of 8 or 4 bits, or in a half type, into float32 panels.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/panels.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Terms of a packed panel (engine/types/panels.h).
struct PanelTerms {
  const char* packed;  // from the first one on
  const char* next;    // as many bytes that are prefetched meanwhile, from any address
  int64_t terms;
  float* out;  // [terms, kPanel]
  // For integers only.
  const void* scales;  // [groups, kPanel]
  ScaleType scale_type;
  int64_t group_size;  // terms that share a scale: a multiple of kOct, or all
  int64_t first;       // a multiple of kOct
};

struct UnpackLoops {
  void (*bytes)(const PanelTerms& panel);
  void (*nibbles)(const PanelTerms& panel);
  void (*float16)(const PanelTerms& panel);
  void (*bfloat16)(const PanelTerms& panel);
};

RL_LOOPS(UnpackLoops, unpack_loops)

}  // namespace rushlight::engine
