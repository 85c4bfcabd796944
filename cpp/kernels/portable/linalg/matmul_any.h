// The matrix product of types other than float32. Blocks of both factors are converted to the type
// of the sums, multiplied in register tiles, and the sums are converted back. Sums are float32 for
// the 16-bit floats, float64, int32 for integers up to that size, or int64. Integers wrap around,
// as in torch.
#pragma once

#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/evalue.h"
#include "rushlight/kernels/portable/linalg/gemm.h"

namespace rushlight::kernels {

// Element (i, j) is at data + (i * row + j * col) elements. Null data means that there is no
// matrix.
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

// The floating types and the integral types up to 64 bits, without bool and unsigned types of more
// than 8 bits.
bool can_multiply(DType dtype);
// out = alpha * a b + beta * add
void multiply_any(const Workspace& work, const AnyProduct& product);

}  // namespace rushlight::kernels
