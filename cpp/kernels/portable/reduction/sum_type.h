// The type in which products are summed, and its loops: what the matrix products and the
// convolutions of types other than float32 share.
#pragma once

#include "rushlight/core/dtype.h"
#include "rushlight/kernels/portable/loops/linalg/product.h"

namespace rushlight::kernels {

// The loops for sums of type T, and their DType. Integers are unsigned in T, so that they wrap
// around; kDType is the signed type of the same size.
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
