// The matrix product of types other than float32: blocks of both factors are converted to the type
// that is summed in (float32 for the 16-bit floats, float64, int32 for integers up to that, int64),
// multiplied in register tiles, and the sums converted back. Integers wrap around, as torch's do.
#pragma once

#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/evalue.h"
#include "rushlight/kernels/portable/linalg/gemm.h"

namespace rushlight::kernels {

// Element (i, j) lies at data + (i * row + j * col) elements. No data: no matrix.
struct AnyMatrix {
  const void* data = nullptr;
  int64_t row = 0;
  int64_t col = 0;
};

struct AnyProduct {
  DType dtype = DType::Float32;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  AnyMatrix a;
  AnyMatrix b;
  AnyMatrix add;
  AnyMatrix out;                  // written
  const EValue* alpha = nullptr;  // nullptr is 1
  const EValue* beta = nullptr;
};

// The floating and the integral types up to 64 bits; not bool, not the unsigned beyond 8 bits.
bool can_multiply(DType dtype);
// out = alpha * a b + beta * add
void multiply_any(const Workspace& work, const AnyProduct& product);

}  // namespace rushlight::kernels
