// Systems of linear equations with triangular matrices or LU factors.
#include <algorithm>
#include <utility>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/linalg/matmul_any.h"
#include "rushlight/kernels/portable/linalg/matrix.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

// The shape of the solution: B's, with its leading dimensions broadcast with A's. A's matrices are
// square.
Status solution_shape(KernelContext& ctx, const char* name, const Tensor& a, const Tensor& b,
                      bool left, Shape* shape) {
  RL_TRY(check_square(ctx, name, a));
  RL_TRY(check_matrices(ctx, "B", b));
  bool fits = a.sizes[a.rank - 1] == b.sizes[b.rank - (left ? size_t{2} : size_t{1})];
  shape->rank = a.rank > b.rank ? a.rank : b.rank;
  for (size_t back = 1; back <= shape->rank; ++back) {
    int32_t& size = shape->sizes[shape->rank - back];
    const int32_t own = back <= a.rank ? a.sizes[a.rank - back] : 1;
    const int32_t other = back <= b.rank ? b.sizes[b.rank - back] : 1;
    size = back <= 2 || own == 1 ? other : own;
    fits = fits && (back <= 2 || own == 1 || other == 1 || own == other);
  }
  if (fits) return {};
  return ctx.fail(
      Code::InvalidArgument, "%s has shape %s and B %s, which do not fit for a solution on the %s",
      name, ShapeText(a.shape()).text(), ShapeText(b.shape()).text(), left ? "left" : "right");
}

// Gives `out` its shape and copies the elements of B into it.
Status begin(KernelContext& ctx, const char* name, const Tensor& a, const Tensor& b, bool left,
             Tensor& out) {
  Shape shape;
  RL_TRY(solution_shape(ctx, name, a, b, left, &shape));
  RL_TRY(check_same_type(ctx, name, a, out));
  RL_TRY(check_same_type(ctx, "B", b, out));
  RL_TRY(ctx.resize(out, shape.span()));
  return copy_view(ctx, broadcast_view(b, out), out);
}

constexpr int64_t kBlock = 64;  // equations that are solved before the others are updated

// c -= a b
void subtract_product(const Workspace& work, const Matrix<float>& a, const Matrix<float>& b,
                      const Matrix<float>& c) {
  Product p;
  p.m = c.rows;
  p.n = c.cols;
  p.k = a.cols;
  p.a = {a.data, a.row, a.col, nullptr, nullptr};
  p.b = {b.data, b.col, b.row, nullptr, nullptr};
  p.c = c.data;
  p.c_row = c.row;
  p.c_col = c.col;
  p.add = c.data;
  p.add_row = c.row;
  p.add_col = c.col;
  p.alpha = -1;
  multiply(work, p);
}
void subtract_product(const Workspace& work, const Matrix<double>& a, const Matrix<double>& b,
                      const Matrix<double>& c) {
  EValue minus;
  minus.set_double(-1.0);
  AnyProduct p;
  p.dtype = DType::Float64;
  p.m = c.rows;
  p.n = c.cols;
  p.k = a.cols;
  p.a = {a.data, a.row, a.col};
  p.b = {b.data, b.row, b.col};
  p.add = {c.data, c.row, c.col};
  p.out = p.add;
  p.alpha = &minus;
  multiply_any(work, p);
}

// For large systems: solves a block of equations, then updates the others by a product.
template <typename T>
void solve_triangular(const Workspace& work, const Matrix<T>& a, bool upper, bool unit,
                      const Matrix<T>& b) {
  for (int64_t done = 0; done < a.rows; done += kBlock) {
    const int64_t n = std::min(kBlock, a.rows - done);
    const int64_t first = upper ? a.rows - done - n : done;
    const int64_t rest = a.rows - done - n;
    const int64_t other = upper ? 0 : first + n;
    const Matrix<T> part = b.part(first, n, 0, b.cols);
    solve_triangular(a.part(first, n, first, n), upper, unit, part);
    if (rest == 0) return;
    subtract_product(work, a.part(other, rest, first, n), part, b.part(other, rest, 0, b.cols));
  }
}

// Calls body(index, work) for all matrices of out. Large matrices are processed one after the
// other.
template <typename Body>
void for_solutions(KernelContext& ctx, const Tensor& a, const Tensor& out, Body body) {
  if (out.numel == 0) return;
  const int64_t count = matrices(out);
  const Workspace work(ctx);
  if (a.sizes[a.rank - size_t{1}] > kBlock) {
    for (int64_t i = 0; i < count; ++i) body(i, work);
    return;
  }
  const int64_t each = out.numel / count * a.sizes[a.rank - size_t{1}];
  ctx.parallel(count, matrix_grain(each), [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) body(i, work);
  });
}

template <typename T>
void swap_rows(const Matrix<T>& b, const int32_t* pivots, bool back) {
  for (int64_t iteration = 0; iteration < b.rows; ++iteration) {
    const int64_t i = back ? b.rows - 1 - iteration : iteration;
    const int64_t other = pivots[i] - 1;
    for (int64_t j = 0; j < b.cols && other != i; ++j) std::swap(b(i, j), b(other, j));
  }
}

// Solves P L U x = b in place of b, or the system of the transposed matrix.
template <typename T>
void solve_factored(const Workspace& work, const Matrix<T>& a, const int32_t* pivots,
                    bool transposed, const Matrix<T>& b) {
  if (!transposed) {
    swap_rows(b, pivots, false);
    solve_triangular(work, a, false, true, b);
    solve_triangular(work, a, true, false, b);
  } else {
    solve_triangular(work, a.transposed(), false, false, b);
    solve_triangular(work, a.transposed(), true, true, b);
    swap_rows(b, pivots, true);
  }
}

// Pivots must be one number for each row (no more than there are rows), from 1 to the number of
// rows.
Status check_pivots(KernelContext& ctx, const Tensor& factors, const char* name,
                    const Tensor& pivots) {
  RL_TRY(check_dtype(ctx, name, pivots, DType::Int32));
  const int32_t rows = factors.sizes[factors.rank - 2];
  const int32_t cols = factors.sizes[factors.rank - 1];
  bool fits = pivots.rank + 1 == factors.rank && pivots.is_contiguous() &&
              pivots.sizes[pivots.rank - 1] == (rows < cols ? rows : cols);
  for (size_t d = 0; fits && d + 1 < pivots.rank; ++d) fits = pivots.sizes[d] == factors.sizes[d];
  if (!fits) {
    return ctx.fail(Code::InvalidArgument,
                    "the factors have shape %s, which %s of shape %s do not fit",
                    ShapeText(factors.shape()).text(), name, ShapeText(pivots.shape()).text());
  }
  for (int64_t i = 0; i < pivots.numel; ++i) {
    const int32_t pivot = pivots.as<int32_t>()[i];
    if (pivot >= 1 && pivot <= rows) continue;
    return ctx.fail(Code::InvalidArgument, "%s holds %d, but there are rows from 1 to %d", name,
                    pivot, rows);
  }
  return {};
}

template <typename T>
void unpack(const Tensor& factors, const Tensor& lower, const Tensor& upper) {
  const int64_t count = matrices(factors);
  for (int64_t index = 0; index < count; ++index) {
    const Matrix<T> a = matrix_of<T>(factors, factors, index);
    const Matrix<T> l = matrix_of<T>(lower, factors, index);
    const Matrix<T> u = matrix_of<T>(upper, factors, index);
    for (int64_t i = 0; i < l.rows; ++i) {
      for (int64_t j = 0; j < l.cols; ++j) l(i, j) = i > j ? a(i, j) : (i == j ? T(1) : T(0));
    }
    for (int64_t i = 0; i < u.rows; ++i) {
      for (int64_t j = 0; j < u.cols; ++j) u(i, j) = i <= j ? a(i, j) : T(0);
    }
  }
}

// P has a 1 at the position to which a row of P^T was swapped.
template <typename T>
void permutations(const Tensor& factors, const Tensor& pivots, const Tensor& out) {
  const int64_t count = matrices(factors);
  const int64_t swaps = pivots.sizes[pivots.rank - size_t{1}];
  for (int64_t index = 0; index < count; ++index) {
    const Matrix<T> p = matrix_of<T>(out, factors, index);
    for (int64_t i = 0; i < p.rows; ++i) {
      for (int64_t j = 0; j < p.cols; ++j) p(i, j) = i == j ? T(1) : T(0);
    }
    for (int64_t k = 0; k < swaps; ++k) {
      const int64_t other = pivots.as<int32_t>()[index * swaps + k] - 1;
      for (int64_t i = 0; i < p.rows && other != k; ++i) std::swap(p(i, k), p(i, other));
    }
  }
}

Status resize_matrices(KernelContext& ctx, const Tensor& like, bool wanted, int32_t rows,
                       int32_t cols, Tensor& out) {
  const int32_t none[] = {0};
  if (!wanted) return ctx.resize(out, {none, 1});
  Shape shape(like.shape());
  shape.sizes[shape.rank - 2] = rows;
  shape.sizes[shape.rank - 1] = cols;
  return ctx.resize(out, shape.span());
}

}  // namespace

// linalg_solve_triangular(self, B, *, upper, left, unitriangular, out)
Status linalg_solve_triangular_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& a = args[0]->tensor();
  const bool upper = args[2]->to_bool();
  const bool left = args[3]->to_bool();
  const bool unit = args[4]->to_bool();
  Tensor& out = args[5]->tensor();
  RL_TRY(begin(ctx, "self", a, args[1]->tensor(), left, out));
  for_solutions(ctx, a, out, [&](int64_t i, const Workspace& work) {
    const auto solve = [&](const auto& matrix, const auto& x) {
      if (left) {
        solve_triangular(work, matrix, upper, unit, x);
      } else {
        solve_triangular(work, matrix.transposed(), !upper, unit, x.transposed());
      }
    };
    if (out.dtype == DType::Float64) {
      solve(matrix_of<double>(a, out, i), matrix_of<double>(out, out, i));
    } else {
      solve(matrix_of<float>(a, out, i), matrix_of<float>(out, out, i));
    }
  });
  return {};
}

// linalg_lu_solve(LU, pivots, B, *, left, adjoint, out)
Status linalg_lu_solve_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& factors = args[0]->tensor();
  const Tensor& pivots = args[1]->tensor();
  const bool left = args[3]->to_bool();
  const bool adjoint = args[4]->to_bool();
  Tensor& out = args[5]->tensor();
  RL_TRY(check_square(ctx, "LU", factors));
  RL_TRY(check_pivots(ctx, factors, "pivots", pivots));
  RL_TRY(begin(ctx, "LU", factors, args[2]->tensor(), left, out));
  for_solutions(ctx, factors, out, [&](int64_t i, const Workspace& work) {
    const int32_t* own = pivots.as<const int32_t>() + batch_offset(pivots, 1, out, i);
    const auto solve = [&](const auto& matrix, const auto& x) {
      solve_factored(work, matrix, own, left == adjoint, left ? x : x.transposed());
    };
    if (out.dtype == DType::Float64) {
      solve(matrix_of<double>(factors, out, i), matrix_of<double>(out, out, i));
    } else {
      solve(matrix_of<float>(factors, out, i), matrix_of<float>(out, out, i));
    }
  });
  return {};
}

// lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots, *, P, L, U)
Status lu_unpack_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& factors = args[0]->tensor();
  const Tensor& pivots = args[1]->tensor();
  const bool data = args[2]->to_bool();
  const bool with_pivots = args[3]->to_bool();
  Tensor& p = args[4]->tensor();
  Tensor& l = args[5]->tensor();
  Tensor& u = args[6]->tensor();
  RL_TRY(check_matrices(ctx, "LU_data", factors));
  for (const Tensor* out : {&p, &l, &u}) RL_TRY(check_same_type(ctx, "LU_data", factors, *out));
  RL_TRY(check_pivots(ctx, factors, "LU_pivots", pivots));
  const int32_t rows = factors.sizes[factors.rank - 2];
  const int32_t cols = factors.sizes[factors.rank - 1];
  const int32_t least = rows < cols ? rows : cols;
  RL_TRY(resize_matrices(ctx, factors, with_pivots, rows, rows, p));
  RL_TRY(resize_matrices(ctx, factors, data, rows, least, l));
  RL_TRY(resize_matrices(ctx, factors, data, least, cols, u));
  const bool wide = factors.dtype == DType::Float64;
  if (data) {
    if (wide) {
      unpack<double>(factors, l, u);
    } else {
      unpack<float>(factors, l, u);
    }
  }
  if (with_pivots && wide) permutations<double>(factors, pivots, p);
  if (with_pivots && !wide) permutations<float>(factors, pivots, p);
  return {};
}

}  // namespace rushlight::kernels
