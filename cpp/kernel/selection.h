// What a selective build keeps (docs/selective-build.md). Its header rushlight_selection.h, written
// from the programs that the build is for, may define
//
//   RL_SELECTED_NODES(X)   X(kind) for each kind of the engine's nodes: graph/selected_nodes.h
//   RL_SELECTED_TILE_OPS(X)  X(op) for each operation of the engine's tile programs: types/tile.h
//   RL_SELECTED_WEIGHTS    what the engine's products have as weights: kWeights here
//   RL_SELECTED_ISA        the one instruction set that loops are compiled for, and
//   RL_SELECTED_DOT_ISA    the same for dot products of bytes: kernel/loops/dispatch.h
//   RL_SELECTED_DTYPES(X)  X(dtype) for each dtype of tensors that kernels get: has_dtype() here
//   RL_SELECTED_PRODUCTS   the shapes of float32 products: kProducts here
//
// What is not defined is kept whole, as in every other build.
#pragma once

#if defined(RUSHLIGHT_SELECTION)
#include <rushlight_selection.h>
#endif

#include <cstdint>

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

// True if kernels may get tensors of integers or bools.
constexpr bool has_integral() {
  return has_dtype(DType::UInt8) || has_dtype(DType::Int8) || has_dtype(DType::Int16) ||
         has_dtype(DType::Int32) || has_dtype(DType::Int64) || has_dtype(DType::Bool) ||
         has_dtype(DType::UInt16) || has_dtype(DType::UInt32) || has_dtype(DType::UInt64);
}

// One more than the greatest number of a dtype that kernels may get; at least 1, at most `all`.
constexpr size_t dtype_end(size_t all) {
  while (all > 1 && !has_dtype(static_cast<DType>(all - 1))) --all;
  return all;
}

// The float32 products of portable kernels that the build is made for
// (kernels/portable/linalg/gemm.h). Others are computed by the forms that are left, only slower.
struct Products {
  int64_t rows;  // the most rows of a tile
  bool dots;     // some are computed as dot products,
  bool wide;     // and some by wide tiles
};
#if defined(RL_SELECTED_PRODUCTS)
constexpr Products kProducts = RL_SELECTED_PRODUCTS;
#else
constexpr Products kProducts = {INT64_MAX, true, true};
#endif

// The engine's products of rows that are quantised at run time. Others are refused.
struct Weights {
  bool nibbles;     // of rows with one scale each, some have weights of 4 bits
  bool row_groups;  // some rows have scales in groups
};
#if defined(RL_SELECTED_WEIGHTS)
constexpr Weights kWeights = RL_SELECTED_WEIGHTS;
#else
constexpr Weights kWeights = {true, true};
#endif

// True if a dtype may be left out.
#if defined(RL_SELECTED_DTYPES)
constexpr bool kLeavesDTypesOut = true;
#else
constexpr bool kLeavesDTypesOut = false;
#endif

}  // namespace rushlight::selection
