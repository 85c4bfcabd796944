// Inner loops that fold elements into elements at scattered positions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// How an element is combined with the existing one.
enum class Fold { Add, Multiply, Max, Min };
constexpr size_t kFolds = 4;

// Folds from[i * stride] into to[places[i]], one after the other, by torch's rules for the type.
// Integers wrap around. For bools Add and Max are a logical or, Multiply and Min a logical and. NaN
// is both the greatest and the least.
using FoldFn = void (*)(const void* from, int64_t stride, void* to, const int64_t* places,
                        size_t n);

struct FoldLoops {
  FoldFn at[kFolds][kMaxDType];  // nullptr for a type that the fold does not support
};

RL_LOOPS(FoldLoops, fold_loops)

}  // namespace rushlight::kernels
