// What a selective build keeps (docs/selective-build.md). Its header rushlight_selection.h, written
// from the programs that the build is for, may define
//
//   RL_SELECTED_NODES(X)   X(kind) for each kind of the engine's nodes: graph/selected_nodes.h
//   RL_SELECTED_ISA        the one instruction set that loops are compiled for, and
//   RL_SELECTED_DOT_ISA    the same for dot products of bytes: kernel/loops/dispatch.h
//   RL_SELECTED_DTYPES(X)  X(dtype) for each dtype of tensors that kernels get: has_dtype() here
//
// What is not defined is kept whole, as in every other build.
#pragma once

#if defined(RUSHLIGHT_SELECTION)
#include <rushlight_selection.h>
#endif

#include "rushlight/core/dtype.h"

namespace rushlight::selection {

// True if kernels may get tensors of this dtype. What is for others alone is left out.
constexpr bool has_dtype([[maybe_unused]] DType dtype) {
#if defined(RL_SELECTED_DTYPES)
#define RL_IS_DTYPE(name) || dtype == DType::name
  return false RL_SELECTED_DTYPES(RL_IS_DTYPE);
#undef RL_IS_DTYPE
#else
  return true;
#endif
}

// True if a dtype may be left out.
#if defined(RL_SELECTED_DTYPES)
constexpr bool kLeavesDTypesOut = true;
#else
constexpr bool kLeavesDTypesOut = false;
#endif

}  // namespace rushlight::selection
