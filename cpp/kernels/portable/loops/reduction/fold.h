// Inner loops of folding elements into scattered places.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/loops/elementwise/convert.h"

namespace rushlight::kernels {

// How an element goes into the one that is there.
enum class Fold { Add, Multiply, Max, Min };
constexpr size_t kFolds = 4;

// Folds from[i * stride] into to[places[i]], one after the other, as torch does in the type:
// integers wrap around, of bools Add and Max are a logical or, Multiply and Min an and; NaN is both
// greatest and least.
using FoldFn = void (*)(const void* from, int64_t stride, void* to, const int64_t* places,
                        size_t n);

struct FoldLoops {
  FoldFn at[kFolds][kMaxDType];  // nullptr for a type that cannot be computed with
};

RL_LOOPS(FoldLoops, fold_loops)

}  // namespace rushlight::kernels
