// Inner loops of scatter_add.
#pragma once

#include "rushlight/core/dtype.h"
#include "rushlight/kernels/portable/loops/dispatch.h"

namespace rushlight::kernels {

// table[offsets[k]] += values[k * step] for k < n, one after another: offsets may be equal. Adds
// as torch does in the type; bool is a logical or.
using AddAtFn = void (*)(void* table, const int64_t* offsets, size_t n, const void* values,
                         int64_t step);

struct ScatterLoops {
  AddAtFn add[static_cast<size_t>(DType::BFloat16) + 1];  // by DType; nullptr: no such type
};

RL_LOOPS(ScatterLoops, scatter_loops)

}  // namespace rushlight::kernels
