// Conversion of contiguous elements between types by torch's rules: NaN and any nonzero number are
// true, floating to integral truncates, integral to narrower integral wraps around, bool is 0 or 1.
#pragma once

#include <cstddef>

#include "rushlight/core/dtype.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernel/selection.h"

namespace rushlight::kernels {

using ConvertFn = void (*)(const void* in, void* out, size_t n);

// The types that kernels compute in.
enum ComputeType { kF32, kF64, kI64, kI32, kBool, kComputeTypes };
constexpr size_t kMaxDType = 30;
constexpr size_t kConvertedDTypes = selection::dtype_end(kMaxDType);

// False if no tensor of this build's programs is computed with in this type (kernel/selection.h).
constexpr bool keeps_compute(ComputeType type) {
  using selection::has_dtype;
  switch (type) {
    case kF32:
      return has_dtype(DType::Float32) || has_dtype(DType::Float16) || has_dtype(DType::BFloat16);
    case kF64:
      return has_dtype(DType::Float64);
    case kI64:
      return has_dtype(DType::Int64);
    case kBool:
      return has_dtype(DType::Bool);
    default:
      return has_dtype(DType::Int32) || has_dtype(DType::Int16) || has_dtype(DType::Int8) ||
             has_dtype(DType::UInt8) || has_dtype(DType::Bool);
  }
}

// A loop for a type that kernels compute in, or nullptr if this build leaves the type out.
#define RL_KEEP(type, loop) (keeps_compute(type) ? &loop : nullptr)

struct ConvertLoops {
  // nullptr if a type cannot be converted, or if this build leaves it out. The tables include
  // conversions between equal types.
  ConvertFn to[kComputeTypes][kConvertedDTypes];    // [compute type][from]
  ConvertFn from[kComputeTypes][kConvertedDTypes];  // [compute type][to]
};

RL_LOOPS(ConvertLoops, convert_loops)

}  // namespace rushlight::kernels
