// The inner loop of the gated linear unit.
#pragma once

#include <cstddef>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

struct GluLoops {
  // out[i] = x[i] * sigmoid(gate[i]); [0] is float, [1] double (kF32, kF64)
  void (*glu[2])(const void* x, const void* gate, size_t n, void* out);
};

RL_LOOPS(GluLoops, glu_loops)

}  // namespace rushlight::kernels
