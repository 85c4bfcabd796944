// Factorisations of matrices: Cholesky, LU with partial pivoting, and QR by Householder reflectors.
// The algorithms are LAPACK's unblocked ones, so that pivots and signs are the same as eager's.
#include <cmath>
#include <cstring>
#include <utility>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/linalg/matrix.h"
#include "rushlight/kernels/portable/loops/linalg/product.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {

Status check_matrices(KernelContext& ctx, const char* name, const Tensor& tensor) {
  if (tensor.dtype != DType::Float32 && tensor.dtype != DType::Float64) {
    return ctx.fail(Code::NotSupported, "%s is %s, but must be float32 or float64", name,
                    dtype_name(tensor.dtype));
  }
  if (tensor.rank >= 2) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but must be a matrix, or many", name,
                  ShapeText(tensor.shape()).text());
}

Status check_square(KernelContext& ctx, const char* name, const Tensor& tensor) {
  RL_TRY(check_matrices(ctx, name, tensor));
  if (tensor.sizes[tensor.rank - 1] == tensor.sizes[tensor.rank - 2]) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but its matrices must be square", name,
                  ShapeText(tensor.shape()).text());
}

namespace {

// The leading dimensions; the caller may add more.
Shape batch_shape(const Tensor& t) {
  Shape shape(t.shape());
  shape.rank -= 2;
  return shape;
}

// Calls body(index) for all matrices of `out`. `each` is the number of multiplications for one.
template <typename Body>
void for_matrices(KernelContext& ctx, const Tensor& out, int64_t each, Body body) {
  ctx.parallel(matrices(out), matrix_grain(each), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// About the number of multiplications for one matrix; 0 if there are no matrices, since sizes may
// be any then.
int64_t cubed(const Tensor& t) {
  if (t.numel == 0) return 0;
  const int64_t rows = t.sizes[t.rank - size_t{2}];
  const int64_t cols = t.sizes[t.rank - size_t{1}];
  return rows * cols * (rows < cols ? rows : cols);
}

// Computes the lower factor in place, and zeros above the diagonal. Returns 0, or the order of the
// first leading minor that is not positive.
template <typename T>
int32_t cholesky(const Matrix<T>& a) {
  int32_t info = 0;
  for (int64_t k = 0; k < a.rows && info == 0; ++k) {
    if (!(a(k, k) > 0)) {
      info = static_cast<int32_t>(k + 1);
      break;
    }
    const T root = std::sqrt(a(k, k));
    a(k, k) = root;
    const int64_t rest = a.rows - k - 1;
    T* column = &a.data[(k + 1) * a.row + k * a.col];
    for (int64_t i = 0; i < rest; ++i) column[i * a.row] /= root;
    for (int64_t j = 0; j < rest; ++j) {
      const T factor = -column[j * a.row];
      if (a.row == 1) {
        add_scaled(rest - j, factor, column + j, 1, &a.data[(k + 1 + j) * (a.row + a.col)], 1);
        continue;
      }
      for (int64_t i = j; i < rest; ++i) a(k + 1 + i, k + 1 + j) += factor * column[i * a.row];
    }
  }
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = i + 1; j < a.cols; ++j) a(i, j) = 0;
  }
  return info;
}

// In place. Returns 0, or the number of the first pivot that is zero.
template <typename T>
int32_t lu(const Matrix<T>& a, bool pivot, int32_t* pivots) {
  int32_t info = 0;
  const int64_t count = a.rows < a.cols ? a.rows : a.cols;
  for (int64_t k = 0; k < count; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < a.rows && pivot; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    }
    pivots[k] = static_cast<int32_t>(best + 1);
    for (int64_t j = 0; j < a.cols && best != k; ++j) std::swap(a(k, j), a(best, j));
    if (a(k, k) == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    const int64_t rows = a.rows - k - 1;
    const int64_t cols = a.cols - k - 1;
    T* column = &a.data[(k + 1) * a.row + k * a.col];
    const T* line = &a.data[k * a.row + (k + 1) * a.col];
    T* rest = &a.data[(k + 1) * (a.row + a.col)];
    for (int64_t i = 0; i < rows; ++i) column[i * a.row] /= a(k, k);
    if (a.row == 1) {
      for (int64_t j = 0; j < cols; ++j) {
        add_scaled(rows, -line[j * a.col], column, 1, rest + j * a.col, 1);
      }
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        add_scaled(cols, -column[i * a.row], line, a.col, rest + i * a.row, a.col);
      }
    }
  }
  return info;
}

float dot(const float* a, const float* b, int64_t n) { return product_loops().f.dot(a, b, n); }
double dot(const double* a, const double* b, int64_t n) { return product_loops().d.dot(a, b, n); }

// The Euclidean norm of n elements that are `stride` apart.
template <typename T>
T length(const T* x, int64_t stride, int64_t n) {
  double greatest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::abs(static_cast<double>(x[i * stride]));
    if (size > greatest || std::isnan(size)) greatest = size;
  }
  if (greatest == 0 || !std::isfinite(greatest)) return static_cast<T>(greatest);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double part =
        static_cast<double>(x[i * stride]) / greatest;  // its square cannot overflow
    sum += part * part;
  }
  return static_cast<T>(greatest * std::sqrt(sum));
}

// Applies the reflector 1 - tau v v^T to columns from..cols - 1 of `a`. v starts with 1; its other
// elements are in rows top + 1.. of column `at` of `from`.
template <typename T>
void reflect(const Matrix<T>& from, int64_t at, T tau, const Matrix<T>& a, int64_t first) {
  if (tau == 0) return;
  const int64_t rest = a.rows - at - 1;
  const T* v = &from.data[(at + 1) * from.row + at * from.col];
  for (int64_t j = first; j < a.cols; ++j) {
    T* column = &a.data[at * a.row + j * a.col];
    T sum = column[0];
    if (from.row == 1 && a.row == 1) {
      sum += dot(v, column + 1, rest);
    } else {
      for (int64_t i = 0; i < rest; ++i) sum += v[i * from.row] * column[(i + 1) * a.row];
    }
    column[0] -= tau * sum;
    add_scaled(rest, -tau * sum, v, from.row, column + a.row, a.row);
  }
}

// In place: R in the upper triangle, reflectors below.
template <typename T>
void qr(const Matrix<T>& a, T* tau) {
  const int64_t count = a.rows < a.cols ? a.rows : a.cols;
  for (int64_t k = 0; k < count; ++k) {
    const T norm = length(&a.data[(k + 1) * a.row + k * a.col], a.row, a.rows - k - 1);
    tau[k] = 0;
    if (norm == 0) continue;
    const T head = a(k, k);
    const T beta = -std::copysign(std::hypot(head, norm), head);
    tau[k] = (beta - head) / beta;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= head - beta;
    a(k, k) = beta;
    reflect(a, k, tau[k], a, k + 1);
  }
}

// Calls the body with a null pointer whose type is the type to compute in.
template <typename Body>
void by_type(DType dtype, Body body) {
  if (dtype == DType::Float64) {
    body(static_cast<double*>(nullptr));
  } else {
    body(static_cast<float*>(nullptr));
  }
}

Status check_info(KernelContext& ctx, const EValue& check, const Tensor& info) {
  for (int64_t i = 0; check.to_bool() && i < info.numel; ++i) {
    const int32_t code = info.as<int32_t>()[i];
    if (code == 0) continue;
    return ctx.fail(Code::InvalidArgument,
                    "matrix %lld has no factorisation: its leading minor of order %d is singular, "
                    "or not positive where it must be",
                    static_cast<long long>(i), code);
  }
  return {};
}

}  // namespace

// linalg_cholesky_ex(self, *, upper, check_errors, L, info)
Status linalg_cholesky_ex_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const bool upper = args[1]->to_bool();
  Tensor& factor = args[3]->tensor();
  Tensor& info = args[4]->tensor();
  RL_TRY(check_square(ctx, "self", self));
  RL_TRY(check_same_type(ctx, "self", self, factor));
  RL_TRY(check_dtype(ctx, "info", info, DType::Int32));
  RL_TRY(ctx.resize_like(factor, self));
  RL_TRY(ctx.resize(info, batch_shape(self).span()));
  copy_all(self, factor);
  by_type(self.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for_matrices(ctx, factor, cubed(self), [&](int64_t i) {
      const Matrix<T> a = matrix_of<T>(factor, factor, i);
      info.as<int32_t>()[batch_offset(info, 0, factor, i)] = cholesky(upper ? a.transposed() : a);
    });
  });
  return check_info(ctx, *args[2], info);
}

// linalg_lu_factor_ex(A, *, pivot, check_errors, LU, pivots, info)
Status linalg_lu_factor_ex_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& factors = args[3]->tensor();
  Tensor& pivots = args[4]->tensor();
  Tensor& info = args[5]->tensor();
  RL_TRY(check_matrices(ctx, "A", self));
  RL_TRY(check_same_type(ctx, "A", self, factors));
  RL_TRY(check_dtype(ctx, "pivots", pivots, DType::Int32));
  RL_TRY(check_dtype(ctx, "info", info, DType::Int32));
  Shape shape = batch_shape(self);
  RL_TRY(ctx.resize(info, shape.span()));
  const int32_t rows = self.sizes[self.rank - 2];
  const int32_t cols = self.sizes[self.rank - 1];
  shape.push(rows < cols ? rows : cols);
  RL_TRY(ctx.resize(pivots, shape.span()));
  RL_TRY(ctx.resize_like(factors, self));
  if (!pivots.is_contiguous() || !info.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "pivots and info must lie in row-major order");
  }
  copy_all(self, factors);
  const int64_t count = shape.sizes[shape.rank - 1];
  by_type(self.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for_matrices(ctx, factors, cubed(self), [&](int64_t i) {
      info.as<int32_t>()[i] = lu(matrix_of<T>(factors, factors, i), args[1]->to_bool(),
                                 pivots.as<int32_t>() + i * count);
    });
  });
  return check_info(ctx, *args[2], info);
}

// geqrf(self, *, a, tau)
Status geqrf_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& a = args[1]->tensor();
  Tensor& tau = args[2]->tensor();
  RL_TRY(check_matrices(ctx, "self", self));
  RL_TRY(check_same_type(ctx, "self", self, a));
  RL_TRY(check_same_type(ctx, "self", self, tau));
  Shape shape = batch_shape(self);
  const int32_t rows = self.sizes[self.rank - 2];
  const int32_t cols = self.sizes[self.rank - 1];
  shape.push(rows < cols ? rows : cols);
  RL_TRY(ctx.resize(tau, shape.span()));
  RL_TRY(ctx.resize_like(a, self));
  if (!tau.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "tau does not lie in row-major order");
  }
  copy_all(self, a);
  const int64_t count = shape.sizes[shape.rank - 1];
  by_type(self.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for_matrices(ctx, a, cubed(self),
                 [&](int64_t i) { qr(matrix_of<T>(a, a, i), tau.as<T>() + i * count); });
  });
  return {};
}

// linalg_householder_product(input, tau, *, out): the first columns of the product of reflectors
Status linalg_householder_product_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& input = args[0]->tensor();
  const Tensor& tau = args[1]->tensor();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_matrices(ctx, "input", input));
  RL_TRY(check_same_type(ctx, "input", input, out));
  RL_TRY(check_same_type(ctx, "tau", tau, out));
  const int64_t cols = input.sizes[input.rank - 1];
  bool fits = cols <= input.sizes[input.rank - 2] && tau.rank + 1 == input.rank &&
              tau.sizes[tau.rank - 1] <= cols && tau.is_contiguous();
  for (size_t d = 0; fits && d + 1 < tau.rank; ++d) fits = tau.sizes[d] == input.sizes[d];
  if (!fits) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s and tau %s: there may be at most as many columns as rows, "
                    "and reflectors as columns",
                    ShapeText(input.shape()).text(), ShapeText(tau.shape()).text());
  }
  RL_TRY(ctx.resize_like(out, input));
  const int64_t count = tau.sizes[tau.rank - 1];
  by_type(input.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for_matrices(ctx, out, cubed(input), [&](int64_t index) {
      const Matrix<T> v = matrix_of<T>(input, out, index);
      const Matrix<T> q = matrix_of<T>(out, out, index);
      for (int64_t i = 0; i < q.rows; ++i) {
        for (int64_t j = 0; j < q.cols; ++j) q(i, j) = i == j ? T(1) : T(0);
      }
      const T* factors = tau.as<const T>() + index * count;
      for (int64_t k = count; k-- > 0;) reflect(v, k, factors[k], q, k);
    });
  });
  return {};
}

}  // namespace rushlight::kernels
