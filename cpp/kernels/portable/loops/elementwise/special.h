// Inner loops of special functions (loops/elementwise/elementwise.h) in double. Each result is
// within a few units of 1e-15 of the function where that is well conditioned.
#pragma once

#include "rushlight/kernels/portable/loops/elementwise/elementwise.h"

namespace rushlight::kernels {

enum class SpecialOp {
  Erfc,
  Erfcx,
  Erfinv,
  I0,
  I0e,
  I1,
  I1e,
  K0,
  K0e,
  K1,
  K1e,
  Lgamma,
  LogNdtr,
  Ndtri,
  Count
};

struct SpecialLoops {
  ElementwiseFn fn[static_cast<size_t>(SpecialOp::Count)];
};

RL_LOOPS(SpecialLoops, special_loops)

}  // namespace rushlight::kernels
