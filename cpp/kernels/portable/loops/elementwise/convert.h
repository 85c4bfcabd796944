// Conversion of contiguous elements between types by torch's rules: NaN and any nonzero number are
// true, floating to integral truncates, integral to narrower integral wraps around, bool is 0 or 1.
#pragma once

#include <cstddef>

#include "rushlight/core/dtype.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

using ConvertFn = void (*)(const void* in, void* out, size_t n);

// The types that kernels compute in.
enum ComputeType { kF32, kF64, kI64, kI32, kBool, kComputeTypes };
constexpr size_t kMaxDType = 30;

struct ConvertLoops {
  // nullptr if a type cannot be converted. The tables include conversions between equal types.
  ConvertFn to[kComputeTypes][kMaxDType];    // [compute type][from]
  ConvertFn from[kComputeTypes][kMaxDType];  // [compute type][to]
};

RL_LOOPS(ConvertLoops, convert_loops)

}  // namespace rushlight::kernels
