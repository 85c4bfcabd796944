// Batches of small dense matrices in float or double with any strides: what the kernels of linear
// algebra share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

template <typename T>
struct Matrix {
  T* data;
  int64_t rows;
  int64_t cols;
  int64_t row;  // from one row to the next, in elements
  int64_t col;

  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  Matrix transposed() const { return {data, cols, rows, col, row}; }
  // The part of `n_rows` rows and `n_cols` columns that starts at (i, j).
  Matrix part(int64_t i, int64_t n_rows, int64_t j, int64_t n_cols) const {
    return {data + i * row + j * col, n_rows, n_cols, row, col};
  }
};

// y += a x, for n elements that are a fixed stride apart.
template <typename T>
void add_scaled(int64_t n, T a, const T* x, int64_t x_stride, T* y, int64_t y_stride) {
  if (x_stride == 1 && y_stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * y_stride] += a * x[i * x_stride];
  }
}

// The number of matrices in a tensor's leading dimensions.
inline int64_t matrices(const Tensor& t) {
  int64_t count = 1;
  for (size_t d = 0; d + 2 < t.rank; ++d) count *= t.sizes[d];
  return count;
}

// The offset of the last `inner` dimensions of `t` that belong to matrix `index` of `out`. Leading
// dimensions of size 1 repeat.
inline int64_t batch_offset(const Tensor& t, size_t inner, const Tensor& out, int64_t index) {
  int64_t offset = 0;
  const size_t batch = out.rank - size_t{2};
  for (size_t d = batch; d-- > 0;) {
    const int64_t i = index % out.sizes[d];
    index /= out.sizes[d];
    const size_t own_batch = t.rank - inner;
    if (batch - d > own_batch) continue;
    const size_t own = own_batch - (batch - d);
    if (t.sizes[own] != 1) offset += i * t.strides[own];
  }
  return offset;
}

// The matrix of `t` that belongs to matrix `index` of `out`.
template <typename T>
Matrix<T> matrix_of(const Tensor& t, const Tensor& out, int64_t index) {
  const size_t last = t.rank - size_t{1};
  return {t.as<T>() + batch_offset(t, 2, out, index), t.sizes[last - 1], t.sizes[last],
          t.strides[last - 1], t.strides[last]};
}

// Returns NotSupported unless the tensor is float32 or float64 and has at least two dimensions.
Status check_matrices(KernelContext& ctx, const char* name, const Tensor& tensor);
// The same; also returns InvalidArgument unless its matrices are square.
Status check_square(KernelContext& ctx, const char* name, const Tensor& tensor);

// The grain for KernelContext::parallel(), for matrices of `each` multiplications.
inline int64_t matrix_grain(int64_t each) { return (int64_t{1} << 18) / (each + 1) + 1; }

// Solves a x = b in place of b, where `a` is triangular. The other triangle of `a` is not read, and
// its diagonal is not read if `unit`.
template <typename T>
void solve_triangular(const Matrix<T>& a, bool upper, bool unit, const Matrix<T>& b) {
  const int64_t n = a.rows;
  for (int64_t iteration = 0; iteration < n; ++iteration) {
    const int64_t k = upper ? n - 1 - iteration : iteration;
    const int64_t first = upper ? 0 : k + 1;
    const int64_t rest = n - 1 - iteration;
    for (int64_t j = 0; j < b.cols && !unit; ++j) b(k, j) /= a(k, k);
    if (b.row == 1) {
      for (int64_t j = 0; j < b.cols; ++j) {
        add_scaled(rest, -b(k, j), &a.data[first * a.row + k * a.col], a.row,
                   &b.data[first * b.row + j * b.col], b.row);
      }
    } else {
      for (int64_t i = first; i < first + rest; ++i) {
        add_scaled(b.cols, -a(i, k), &b.data[k * b.row], b.col, &b.data[i * b.row], b.col);
      }
    }
  }
}

}  // namespace rushlight::kernels
