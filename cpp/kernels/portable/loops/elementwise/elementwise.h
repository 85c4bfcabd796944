// Elementwise inner loops: n results from n elements of up to three inputs. All are contiguous and
// of the types that kernels compute in (loops/elementwise/convert.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// The parameters of a loop, and what it reports.
struct LoopArgs {
  double d[3] = {0, 0, 0};
  int64_t i[3] = {0, 0, 0};
  bool zero_division = false;
};

// `out` may be the same memory as one of the inputs.
using ElementwiseFn = void (*)(const void* const* in, void* out, size_t n, LoopArgs* args);

}  // namespace rushlight::kernels
