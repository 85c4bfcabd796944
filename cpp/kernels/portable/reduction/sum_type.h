// The type that products are summed in, by the type of its bits, and the loops for it: what the
// matrix products and the convolutions of other types than float32 have in common.
#pragma once

#include "rushlight/core/dtype.h"
#include "rushlight/kernels/portable/loops/linalg/product.h"

namespace rushlight::kernels {

// Unsigned integers wrap around, the bits are those of the signed type.
template <typename T>
struct SumType;
template <>
struct SumType<float> {
  static constexpr DType kDType = DType::Float32;
  static const ProductLoops<float>& loops() { return product_loops().f; }
};
template <>
struct SumType<double> {
  static constexpr DType kDType = DType::Float64;
  static const ProductLoops<double>& loops() { return product_loops().d; }
};
template <>
struct SumType<uint32_t> {
  static constexpr DType kDType = DType::Int32;
  static const ProductLoops<uint32_t>& loops() { return product_loops().i; }
};
template <>
struct SumType<uint64_t> {
  static constexpr DType kDType = DType::Int64;
  static const ProductLoops<uint64_t>& loops() { return product_loops().l; }
};

}  // namespace rushlight::kernels
