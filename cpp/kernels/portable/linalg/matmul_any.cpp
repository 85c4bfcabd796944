#include "rushlight/kernels/portable/linalg/matmul_any.h"

#include <algorithm>
#include <type_traits>

#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/reduction/sum_type.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kDepth = 128;     // depth of a block: a panel of b this long fits into L1
constexpr int64_t kHeight = 192;    // rows of a block, for which a panel of b is converted once
constexpr int64_t kLowHeight = 12;  // maximum rows for reading b in place, if possible
constexpr int64_t kFewRows = 4;     // maximum rows for dot products, if k is consecutive in b
constexpr int64_t kDots = 64;       // elements of a row of the product that are stored at a time
constexpr int64_t kAdded = 128;     // elements of the addend that are converted at a time

const void* at(const AnyMatrix& m, DType dtype, int64_t i, int64_t j) {
  return static_cast<const uint8_t*>(m.data) +
         (i * m.row + j * m.col) * static_cast<int64_t>(element_size(dtype));
}

CopyBlock piece(int64_t rows, int64_t cols, int64_t row, int64_t col, int64_t to_row,
                int64_t to_col) {
  CopyBlock block;
  block.push(rows, row, to_row);
  block.push(cols, col, to_col);
  return block;
}

template <typename T>
T scalar(const EValue* value) {
  if (value == nullptr) return 1;
  if constexpr (std::is_integral<T>::value) {
    return static_cast<T>(value->to_int());
  } else {
    return static_cast<T>(value->to_double());
  }
}

// The sizes of a block of the product, and the memory for it.
template <typename T>
struct Blocks {
  int64_t depth;           // along k
  int64_t height;          // rows
  int64_t width;           // columns, a multiple of a tile's
  T* a = nullptr;          // height x depth
  T* b = nullptr;          // depth x a tile's width
  T* converted = nullptr;  // b in the type of the sums, before it is transposed
  T* sums = nullptr;       // height x width

  Blocks(const Workspace& work, const AnyProduct& p, int64_t tile) {
    const int64_t room = work.size() / work.shares() * static_cast<int64_t>(sizeof(float)) /
                         static_cast<int64_t>(sizeof(T));
    depth = std::max<int64_t>(std::min(kDepth, p.k), 1);
    // Three eighths of the room are for a.
    height = std::min(p.m, even(p.m, std::min(kHeight, room * 3 / 8 / depth), kProductRows));
    // The minimum, which is on the stack, suffices for a depth of 8 and one row.
    const auto rest = [&] { return room - height * depth - 2 * depth * tile; };
    while (rest() < height * tile && height > 1) height = (height + 1) / 2;
    while (rest() < height * tile && depth > 1) depth = (depth + 1) / 2;
    const int64_t most = rest() / (height * tile) * tile;
    width = even(p.n, most, tile);
  }

  // Divides n into nearly equal pieces, and returns their size: a multiple of `unit`, and at most
  // `most` if one unit fits into that.
  static int64_t even(int64_t n, int64_t most, int64_t unit) {
    const int64_t units = (n + unit - 1) / unit;
    const int64_t each = std::max<int64_t>(most / unit, 1);
    const int64_t pieces = (units + each - 1) / each;
    return (units + pieces - 1) / pieces * unit;
  }

  void place(const Workspace& work, int64_t tile) {
    a = reinterpret_cast<T*>(work.data());
    b = a + height * depth;
    converted = b + depth * tile;
    sums = converted + depth * tile;
  }
};

template <typename T>
class Multiplier {
 public:
  Multiplier(const Workspace& work, const AnyProduct& p)
      : work_(work), p_(p), loops_(SumType<T>::loops()), blocks_(work, p, loops_.width) {}

  void run() {
    const int64_t across = (p_.n + blocks_.width - 1) / blocks_.width;
    const int64_t down = (p_.m + blocks_.height - 1) / blocks_.height;
    const int64_t each = std::max<int64_t>(blocks_.height * blocks_.width * p_.k, 1);
    Shares shares(work_.shares());
    work_.context().parallel(
        across * down, kProductGrain / each + 1, [&](int64_t begin, int64_t end) {
          const int share = shares.take();
          Blocks<T> here = blocks_;
          here.place(Workspace(work_, share, work_.shares()), loops_.width);
          for (int64_t item = begin; item < end; ++item) {
            const int64_t i = item / across * here.height;
            const int64_t j = item % across * here.width;
            block(here, i, j, std::min(here.height, p_.m - i), std::min(here.width, p_.n - j));
          }
          shares.give(share);
        });
  }

  // For few rows if k is consecutive in b: one dot product for each element.
  void run_dots() {
    // Converts a once, if there is room for it.
    const int64_t depth = std::min(kDepth, p_.k);
    T* const b_row = reinterpret_cast<T*>(work_.data());
    T* const a_rows = b_row + depth;
    const bool kept = (p_.m * p_.k + depth) * static_cast<int64_t>(sizeof(T)) <=
                      work_.size() * static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; kept && i < p_.m; ++i) {
      converting_copy(at(p_.a, p_.dtype, i, 0), p_.dtype, a_rows + i * p_.k, kSum,
                      piece(1, p_.k, 0, p_.a.col, 0, 1));
    }
    if (!kept) return run();
    for (int64_t j0 = 0; j0 < p_.n; j0 += kDots) {
      const int64_t cols = std::min(kDots, p_.n - j0);
      T sums[kFewRows * kDots] = {};
      for (int64_t j = 0; j < cols; ++j) {
        for (int64_t k = 0; k < p_.k; k += depth) {
          const int64_t n = std::min(depth, p_.k - k);
          const T* b = static_cast<const T*>(at(p_.b, p_.dtype, k, j0 + j));
          if (p_.dtype != kSum) {
            convert(b, p_.dtype, b_row, kSum, static_cast<size_t>(n));
            b = b_row;
          }
          for (int64_t i = 0; i < p_.m; ++i) {
            sums[i * kDots + j] += loops_.dot(a_rows + i * p_.k + k, b, n);
          }
        }
      }
      store_results(0, j0, p_.m, cols, sums, kDots);
    }
  }

 private:
  static constexpr DType kSum = SumType<T>::kDType;

  void block(const Blocks<T>& blocks, int64_t i0, int64_t j0, int64_t rows, int64_t cols) const {
    const int64_t tile = loops_.width;
    const int64_t padded = (cols + tile - 1) / tile * tile;
    std::fill(blocks.sums, blocks.sums + rows * padded, T{0});
    for (int64_t k = 0; k < p_.k; k += blocks.depth) {
      const int64_t depth = std::min(blocks.depth, p_.k - k);
      ProductTile<T> t{};
      t.k = depth;
      t.a_stride = depth;
      t.sums_stride = padded;
      converting_copy(at(p_.a, p_.dtype, i0, k), p_.dtype, blocks.a, kSum,
                      piece(rows, depth, p_.a.row, p_.a.col, depth, 1));
      for (int64_t j = 0; j < cols; j += tile) {
        panel(blocks, rows <= kLowHeight, k, j0 + j, depth, std::min(tile, cols - j), &t);
        for (int64_t i = 0; i < rows; i += kProductRows) {
          t.a = blocks.a + i * depth;
          t.sums = blocks.sums + i * padded + j;
          loops_.tile[std::min(kProductRows, rows - i) - 1](t);
        }
      }
    }
    store_results(i0, j0, rows, cols, blocks.sums, padded);
  }

  // The piece of b that a tile reads. With `in_place` it is read in place if it is full and has the
  // layout and type that tiles read.
  void panel(const Blocks<T>& blocks, bool in_place, int64_t k, int64_t j, int64_t depth,
             int64_t cols, ProductTile<T>* t) const {
    const int64_t tile = loops_.width;
    const void* here = at(p_.b, p_.dtype, k, j);
    if (in_place && p_.dtype == kSum && p_.b.col == 1 && cols == tile) {
      t->b = static_cast<const T*>(here);
      t->b_stride = p_.b.row;
      return;
    }
    t->b = blocks.b;
    t->b_stride = tile;
    if (cols < tile) std::fill(blocks.b, blocks.b + depth * tile, T{0});
    if (p_.b.row != 1 || p_.dtype == kSum) {
      return converting_copy(here, p_.dtype, blocks.b, kSum,
                             piece(depth, cols, p_.b.row, p_.b.col, tile, 1));
    }
    // Converts long runs first, then transposes.
    converting_copy(here, p_.dtype, blocks.converted, kSum,
                    piece(depth, cols, p_.b.row, p_.b.col, 1, depth));
    strided_copy(blocks.converted, blocks.b, piece(depth, cols, 1, depth, tile, 1), sizeof(T));
  }

  void store_results(int64_t i0, int64_t j0, int64_t rows, int64_t cols, T* sums,
                     int64_t stride) const {
    const T alpha = scalar<T>(p_.alpha);
    const T beta = scalar<T>(p_.beta);
    for (int64_t i = 0; i < rows; ++i) {
      T* row = sums + i * stride;
      if (p_.alpha != nullptr) {
        for (int64_t j = 0; j < cols; ++j) row[j] *= alpha;
      }
      for (int64_t j = 0, n = 0; p_.add.data != nullptr && j < cols; j += n) {
        n = std::min(kAdded, cols - j);
        T added[kAdded];
        read_added(i0 + i, j0 + j, n, added);
        for (int64_t c = 0; c < n; ++c) row[j + c] += beta * added[c];
      }
    }
    converting_copy(sums, kSum, const_cast<void*>(at(p_.out, p_.dtype, i0, j0)), p_.dtype,
                    piece(rows, cols, stride, 1, p_.out.row, p_.out.col));
  }

  void read_added(int64_t i, int64_t j, int64_t n, T* to) const {
    const void* from = at(p_.add, p_.dtype, i, j);
    if (p_.add.col == 1) {
      convert(from, p_.dtype, to, kSum, static_cast<size_t>(n));
      return;
    }
    converting_copy(from, p_.dtype, to, kSum, piece(1, n, 0, p_.add.col, 0, 1));
  }

  const Workspace& work_;
  const AnyProduct& p_;
  const ProductLoops<T>& loops_;
  Blocks<T> blocks_;
};

template <typename T>
void multiply_in(const Workspace& work, const AnyProduct& p) {
  Multiplier<T> multiplier(work, p);
  if (p.m <= kFewRows && p.b.row == 1) return multiplier.run_dots();
  multiplier.run();
}

// Of a type that can_multiply() is false for, nothing comes here.
template <ComputeType type, typename T>
void multiply_if(const Workspace& work, const AnyProduct& p) {
  if constexpr (keeps_compute(type)) multiply_in<T>(work, p);
}

}  // namespace

bool can_multiply(DType dtype) {
  const bool has_product = is_floating(dtype) || (is_integral(dtype) && dtype <= DType::Int64);
  return has_product && selection::has_dtype(dtype);
}

void multiply_any(const Workspace& work, const AnyProduct& product) {
  if (product.m == 0 || product.n == 0) return;
  switch (compute_index(compute_dtype(product.dtype))) {
    case kF64:
      return multiply_if<kF64, double>(work, product);
    case kI64:
      return multiply_if<kI64, uint64_t>(work, product);
    case kI32:
      return multiply_if<kI32, uint32_t>(work, product);
    default:
      if constexpr (selection::has_dtype(DType::Float16) || selection::has_dtype(DType::BFloat16)) {
        multiply_in<float>(work, product);
      }
  }
}

}  // namespace rushlight::kernels
