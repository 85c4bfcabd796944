#include "rushlight/kernels/portable/matmul_any.h"

#include <algorithm>

#include "rushlight/kernels/portable/strided_copy.h"
#include "rushlight/kernels/portable/view.h"

namespace rushlight::kernels {
namespace {

// Pieces that lie on the stack: about 6 KiB in all.
constexpr int64_t kRows = 4;
constexpr int64_t kCols = 16;
constexpr int64_t kDepth = 32;

template <typename T>
struct SumType;
template <>
struct SumType<float> {
  static constexpr DType kDType = DType::Float32;
};
template <>
struct SumType<double> {
  static constexpr DType kDType = DType::Float64;
};
// Unsigned, so that overflow wraps around; the bits are int64's.
template <>
struct SumType<uint64_t> {
  static constexpr DType kDType = DType::Int64;
};

const void* at(const AnyMatrix& m, DType dtype, int64_t i, int64_t j) {
  return static_cast<const uint8_t*>(m.data) +
         (i * m.row + j * m.col) * static_cast<int64_t>(element_size(dtype));
}

CopyBlock piece(int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t width) {
  CopyBlock block;
  block.push(rows, row, width);
  block.push(cols, col, 1);
  return block;
}

// Rows i.., columns j.. of a matrix, in the sum type, `width` elements per row.
template <typename T>
void read(const AnyMatrix& m, DType dtype, int64_t i, int64_t j, int64_t rows, int64_t cols, T* out,
          int64_t width) {
  converting_copy(at(m, dtype, i, j), dtype, out, SumType<T>::kDType,
                  piece(rows, cols, m.row, m.col, width));
}

template <typename T>
T scalar(const EValue* value) {
  if (value == nullptr) return 1;
  if constexpr (SumType<T>::kDType == DType::Int64) {
    return static_cast<T>(value->to_int());
  } else {
    return static_cast<T>(value->to_double());
  }
}

template <typename T>
void multiply_piece(const T* a, const T* b, int64_t rows, int64_t depth, T* sums) {
  for (int64_t i = 0; i < rows; ++i) {
    T row[kCols];
    std::copy(sums + i * kCols, sums + (i + 1) * kCols, row);
    for (int64_t k = 0; k < depth; ++k) {
      const T factor = a[i * kDepth + k];
      for (int64_t j = 0; j < kCols; ++j) row[j] += factor * b[k * kCols + j];
    }
    std::copy(row, row + kCols, sums + i * kCols);
  }
}

template <typename T>
void multiply_tile(const AnyProduct& p, int64_t i, int64_t j) {
  const int64_t rows = std::min(kRows, p.m - i);
  const int64_t cols = std::min(kCols, p.n - j);
  T sums[kRows * kCols] = {};
  T a[kRows * kDepth];
  T b[kDepth * kCols] = {};
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, p.k - k);
    read(p.a, p.dtype, i, k, rows, depth, a, kDepth);
    read(p.b, p.dtype, k, j, depth, cols, b, kCols);
    multiply_piece(a, b, rows, depth, sums);
  }
  const T alpha = scalar<T>(p.alpha);
  for (T& sum : sums) sum *= alpha;
  if (p.add.data != nullptr) {
    T added[kRows * kCols] = {};
    const T beta = scalar<T>(p.beta);
    read(p.add, p.dtype, i, j, rows, cols, added, kCols);
    for (int64_t s = 0; s < kRows * kCols; ++s) sums[s] += beta * added[s];
  }
  CopyBlock back;
  back.push(rows, kCols, p.out.row);
  back.push(cols, 1, p.out.col);
  converting_copy(sums, SumType<T>::kDType, const_cast<void*>(at(p.out, p.dtype, i, j)), p.dtype,
                  back);
}

template <typename T>
void multiply_in(const AnyProduct& p) {
  for (int64_t i = 0; i < p.m; i += kRows) {
    for (int64_t j = 0; j < p.n; j += kCols) multiply_tile<T>(p, i, j);
  }
}

}  // namespace

bool can_multiply(DType dtype) {
  return is_floating(dtype) || (is_integral(dtype) && dtype <= DType::Int64);
}

void multiply_any(const AnyProduct& product) {
  if (product.dtype == DType::Float64) return multiply_in<double>(product);
  if (is_floating(product.dtype)) return multiply_in<float>(product);
  multiply_in<uint64_t>(product);
}

}  // namespace rushlight::kernels
