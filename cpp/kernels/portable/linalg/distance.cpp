// Distances between rows: from every row of one matrix to every row of another, or between all
// pairs of rows of one matrix.
#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/loops/linalg/distance.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/sum_type.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kWork = 32 * 1024;  // number of differences that is worth a thread
// The size of a block of distances, and the number of elements of each row that are processed at a
// time.
constexpr int64_t kBlockRows = 32;
constexpr int64_t kBlockColumns = 64;
constexpr int64_t kPiece = 32;

// The rows of a matrix, with their start and strides.
struct Rows {
  const Tensor* tensor;
  int64_t offset;

  int64_t row_stride() const { return tensor->strides[tensor->rank - 2]; }
  int64_t column_stride() const { return tensor->strides[tensor->rank - 1]; }
  int64_t elements() const { return tensor->sizes[tensor->rank - 1]; }
};

// Computes the p-norms of the differences of rows a_i and b_j, for blocks of i and j. The rows b_j
// are transposed to columns, and each row a_i is compared with all of them.
template <typename T>
class Distances {
 public:
  // With `products`, only for Euclidean distances, |a - b|^2 is |a|^2 + |b|^2 - 2 a b.
  Distances(const Tensor& a, const Tensor& b, const Tensor& out, double p, bool products = false)
      : a_(a, kSum), b_(b, kSum), out_(out, kSum), p_(p), products_(products) {
    Distance kind = Distance::Power;
    if (p == 0.0) kind = Distance::Nonzero;
    if (p == 1.0) kind = Distance::Absolute;
    if (p == 2.0) kind = Distance::Squared;
    if (std::isinf(p)) kind = Distance::Greatest;
    has_root_ = kind == Distance::Squared || kind == Distance::Power;
    fold_ = distance_loops().fold[static_cast<size_t>(kind)][type()];
  }

  // Computes rows i0 to i1 - 1 by rows j0 to j1 - 1, at most one block of them.
  void compute(const Rows& a, int64_t i0, int64_t i1, const Rows& b, int64_t j0, int64_t j1) {
    width_ = (static_cast<size_t>(j1 - j0) + kWidth - 1) / kWidth * kWidth;
    std::fill(acc_, acc_ + (i1 - i0) * kBlockColumns, T{0});
    std::fill(a_squared_, a_squared_ + kBlockRows, T{0});
    std::fill(b_squared_, b_squared_ + kBlockColumns, T{0});
    for (int64_t k = 0; k < a.elements(); k += kPiece) {
      const int64_t n = std::min(kPiece, a.elements() - k);
      pack_columns(b, j0, j1, k, n);
      for (int64_t i = i0; i < i1; ++i) {
        const int64_t from = a.offset + i * a.row_stride() + k * a.column_stride();
        const size_t count = static_cast<size_t>(n);
        const T* x = static_cast<const T*>(a_.read(from, a.column_stride(), count));
        if (products_) {
          std::copy(x, x + n, rows_ + (i - i0) * kPiece);
        } else {
          fold_(x, count, columns_, kBlockColumns, width_, p_, row(i - i0));
        }
      }
      if (products_) multiply(i1 - i0, n);
    }
    if (products_) combine(i1 - i0);
    if (!has_root_) return;
    for (int64_t i = i0; i < i1; ++i) distance_loops().root[type()](row(i - i0), width_, p_);
  }

  // Writes distances `first` to `last` - 1 of row i of the block.
  void write(int64_t i, int64_t first, int64_t last, int64_t to, int64_t stride) {
    const size_t n = static_cast<size_t>(last - first);
    std::copy(row(i) + first, row(i) + last, static_cast<T*>(out_.target(to, stride)));
    out_.store(to, stride, n);
  }

 private:
  static constexpr DType kSum = SumType<T>::kDType;
  static constexpr size_t kWidth = 32;  // columns are a multiple of this, as tiles may need

  static constexpr size_t type() { return sizeof(T) == sizeof(double) ? 1 : 0; }
  T* row(int64_t i) { return acc_ + i * kBlockColumns; }

  void pack_columns(const Rows& b, int64_t j0, int64_t j1, int64_t k, int64_t n) {
    const int64_t count = j1 - j0;
    const int64_t from = b.offset + j0 * b.row_stride() + k * b.column_stride();
    if (b_.same_type()) {
      CopyBlock block;
      block.push(count, b.row_stride(), 1);
      block.push(n, b.column_stride(), kBlockColumns);
      strided_copy(b_.at(from), columns_, block, sizeof(T));
    }
    for (int64_t j = 0; j < count && !b_.same_type(); ++j) {
      const T* x = static_cast<const T*>(
          b_.read(from + j * b.row_stride(), b.column_stride(), static_cast<size_t>(n)));
      for (int64_t i = 0; i < n; ++i) columns_[i * kBlockColumns + j] = x[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      T* line = columns_ + i * kBlockColumns;
      std::fill(line + count, line + width_, T{0});
    }
  }

  // Adds one piece of the terms of a b, |a|^2 and |b|^2.
  void multiply(int64_t rows, int64_t n) {
    const ProductLoops<T>& loops = SumType<T>::loops();
    const T zeros[kPiece] = {};
    distance_loops().fold[static_cast<size_t>(Distance::Squared)][type()](
        zeros, static_cast<size_t>(n), columns_, kBlockColumns, width_, 2.0, b_squared_);
    for (int64_t i = 0; i < rows; ++i) {
      a_squared_[i] += loops.dot(rows_ + i * kPiece, rows_ + i * kPiece, n);
    }
    ProductTile<T> t{};
    t.k = n;
    t.a_stride = kPiece;
    t.b_stride = kBlockColumns;
    t.sums_stride = kBlockColumns;
    for (int64_t j = 0; j < static_cast<int64_t>(width_); j += loops.width) {
      for (int64_t i = 0; i < rows; i += kProductRows) {
        t.a = rows_ + i * kPiece;
        t.b = columns_ + j;
        t.sums = row(i) + j;
        loops.tile[std::min(kProductRows, rows - i) - 1](t);
      }
    }
  }

  void combine(int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      T* line = row(i);
      for (size_t j = 0; j < width_; ++j) {
        const T squared = a_squared_[i] + b_squared_[j] - 2 * line[j];
        line[j] = squared < 0 ? 0 : squared;  // negative only by rounding; NaN stays
      }
    }
  }

  RowReader a_;
  RowReader b_;
  RowWriter out_;
  double p_;
  bool products_;
  DistanceFn fold_;
  bool has_root_;
  size_t width_ = 0;  // width of the block, rounded up
  alignas(64) T columns_[kPiece * kBlockColumns];
  alignas(64) T rows_[kBlockRows * kPiece];
  alignas(64) T acc_[kBlockRows * kBlockColumns];
  alignas(64) T a_squared_[kBlockRows];
  alignas(64) T b_squared_[kBlockColumns];
};

Status check_power(KernelContext& ctx, double p) {
  if (p >= 0.0) return {};
  return ctx.fail(Code::InvalidArgument, "p is %g, but must be 0 or greater", p);
}

// Broadcasts the batch dimensions of two operands.
Status batch_shape(KernelContext& ctx, const Tensor& a, const Tensor& b, Shape* shape) {
  const size_t rank = std::max<size_t>(a.rank, b.rank) - 2;
  for (size_t d = 0; d < rank; ++d) {
    const auto size = [&](const Tensor& t) {
      const size_t missing = rank + 2 - t.rank;
      return d < missing ? 1 : t.sizes[d - missing];
    };
    if (size(a) != size(b) && size(a) != 1 && size(b) != 1) {
      return ctx.fail(Code::InvalidArgument,
                      "x1 has shape %s and x2 has %s, whose batches cannot be broadcast",
                      ShapeText(a.shape()).text(), ShapeText(b.shape()).text());
    }
    shape->push(size(a) == 1 ? size(b) : size(a));
  }
  return {};
}

// The offset in `t` of batch `i`, counted in row-major order over `out`'s batch dimensions.
int64_t batch_offset(const Tensor& t, const Tensor& out, int64_t i) {
  int64_t offset = 0;
  for (size_t d = out.rank - size_t{2}; d-- > 0;) {
    const int64_t at = i % out.sizes[d];
    i /= out.sizes[d];
    const size_t missing = static_cast<size_t>(out.rank - t.rank);
    if (d >= missing && t.sizes[d - missing] > 1) offset += at * t.strides[d - missing];
  }
  return offset;
}

// True if eager computes Euclidean distances by a matrix product, which is fast and less exact.
bool by_products(double p, int64_t mode, int64_t rows, int64_t columns) {
  constexpr int64_t kMany = 25;
  return p == 2.0 && (mode == 1 || (mode == 0 && (rows > kMany || columns > kMany)));
}

template <typename T>
void run_cdist(KernelContext& ctx, const Tensor& a, const Tensor& b, double p, int64_t mode,
               const Tensor& out) {
  const int64_t rows = out.sizes[out.rank - 2];
  const int64_t columns = out.sizes[out.rank - 1];
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const int64_t work = kBlockRows * columns * std::max<int64_t>(a.sizes[a.rank - 1], 1);
  const int64_t grain = std::max<int64_t>(kWork / work, 1);
  ctx.parallel(out.numel / rows / columns * blocks, grain, [&](int64_t begin, int64_t end) {
    Distances<T> distances(a, b, out, p, by_products(p, mode, rows, columns));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t batch = block / blocks;
      const int64_t i0 = block % blocks * kBlockRows;
      const int64_t i1 = std::min(i0 + kBlockRows, rows);
      const Rows a_rows = {&a, batch_offset(a, out, batch)};
      const Rows b_rows = {&b, batch_offset(b, out, batch)};
      const Rows to = {&out, batch_offset(out, out, batch)};
      for (int64_t j0 = 0; j0 < columns; j0 += kBlockColumns) {
        const int64_t j1 = std::min(j0 + kBlockColumns, columns);
        distances.compute(a_rows, i0, i1, b_rows, j0, j1);
        for (int64_t i = i0; i < i1; ++i) {
          const int64_t first = to.offset + i * to.row_stride() + j0 * to.column_stride();
          distances.write(i - i0, 0, j1 - j0, first, to.column_stride());
        }
      }
    }
  });
}

template <typename T>
void run_pdist(KernelContext& ctx, const Tensor& self, double p, const Tensor& out) {
  const int64_t n = self.sizes[0];
  const int64_t blocks = (n + kBlockRows - 1) / kBlockRows;
  ctx.parallel(blocks, 1, [&](int64_t begin, int64_t end) {
    Distances<T> distances(self, self, out, p);
    const Rows rows = {&self, 0};
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i0 = block * kBlockRows;
      const int64_t i1 = std::min(i0 + kBlockRows, n);
      for (int64_t j0 = i0 + 1; j0 < n; j0 += kBlockColumns) {
        const int64_t j1 = std::min(j0 + kBlockColumns, n);
        distances.compute(rows, i0, i1, rows, j0, j1);
        for (int64_t i = i0; i < i1; ++i) {
          const int64_t first = std::max(j0, i + 1);
          // Row i's pairs follow the pairs of earlier rows.
          const int64_t to = i * (2 * n - i - 1) / 2 + first - i - 1;
          if (first < j1) distances.write(i - i0, first - j0, j1 - j0, to, 1);
        }
      }
    }
  });
}

}  // namespace

// _cdist_forward(x1, x2, p, compute_mode, *, out)
Status cdist_forward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& a = args[0]->tensor();
  const Tensor& b = args[1]->tensor();
  const double p = args[2]->to_double();
  const int64_t mode = int_or(*args[3], 0);
  Tensor& out = args[4]->tensor();
  RL_TRY(check_floating(ctx, "x1", a));
  RL_TRY(check_same_type(ctx, "x1", a, out));
  RL_TRY(check_same_type(ctx, "x2", b, out));
  RL_TRY(check_power(ctx, p));
  if (mode < 0 || mode > 2) {
    return ctx.fail(Code::InvalidArgument, "compute_mode is %lld, but must be None, 0, 1 or 2",
                    static_cast<long long>(mode));
  }
  if (a.rank < 2 || b.rank < 2 || a.sizes[a.rank - 1] != b.sizes[b.rank - 1]) {
    return ctx.fail(Code::InvalidArgument,
                    "x1 has shape %s and x2 has %s; both must have two dimensions or more, and "
                    "equal last ones",
                    ShapeText(a.shape()).text(), ShapeText(b.shape()).text());
  }
  Shape shape;
  RL_TRY(batch_shape(ctx, a, b, &shape));
  shape.push(a.sizes[a.rank - 2]);
  shape.push(b.sizes[b.rank - 2]);
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  if (a.dtype == DType::Float64) {
    run_cdist<double>(ctx, a, b, p, mode, out);
  } else {
    run_cdist<float>(ctx, a, b, p, mode, out);
  }
  return {};
}

// _pdist_forward(self, p, *, out): the distances of rows 0 and 1, 0 and 2, …, 1 and 2, …
Status pdist_forward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const double p = args[1]->to_double();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_floating(ctx, "self", self));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(check_rank(ctx, "self", self, 2));
  RL_TRY(check_power(ctx, p));
  const int64_t n = self.sizes[0];
  Shape shape;
  if (!shape.push(n < 2 ? 0 : n * (n - 1) / 2)) {
    return ctx.fail(Code::InvalidArgument, "self has %lld rows, which have too many pairs",
                    static_cast<long long>(n));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  if (self.dtype == DType::Float64) {
    run_pdist<double>(ctx, self, p, out);
  } else {
    run_pdist<float>(ctx, self, p, out);
  }
  return {};
}

}  // namespace rushlight::kernels
