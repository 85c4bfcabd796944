// Elementwise inner loops: n results from n elements of each of up to three inputs, all contiguous
// and in the types that kernels compute in (loops/convert.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// What a loop needs besides its inputs, and what it reports back.
struct LoopArgs {
  double d[3] = {0, 0, 0};
  int64_t i[3] = {0, 0, 0};
  bool zero_division = false;
};

// `out` may be one of the inputs.
using ElementwiseFn = void (*)(const void* const* in, void* out, size_t n, LoopArgs* args);

}  // namespace rushlight::kernels
