// The Walsh-Hadamard transform of rows of 2^k or 28 * 2^k elements, divided by the square root of
// 2^k.
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

constexpr int kOrder = 28;

// The rows of a Hadamard matrix of order 28. The first column is the highest of 28 bits; a set bit
// is +1, a clear bit is -1. QuaRot and SpinQuant rotate models with this matrix.
constexpr uint32_t kRows[kOrder] = {
    0x818694c, 0x41c14a6, 0x20e2a13, 0x1071549, 0x0838ae4, 0x041e532, 0x030d299,
    0x3d019d2, 0x1e82ca9, 0x8e43654, 0xc621b2a, 0xe210d95, 0xf00a6ca, 0x7807325,
    0x5b3201e, 0xac9900f, 0x564c847, 0xab24463, 0xd590271, 0x6ac8178, 0xb4640bc,
    0x66b70c0, 0xb35b820, 0xd8adc10, 0x6d54e08, 0x37a8704, 0x9ad4382, 0xcd6a181,
};

// In place; n is a power of two.
template <typename T>
void transform(T* x, int64_t n) {
  for (int64_t half = 1; half < n; half *= 2) {
    for (int64_t i = 0; i < n; i += 2 * half) {
      for (int64_t j = i; j < i + half; ++j) {
        const T a = x[j];
        const T b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;
      }
    }
  }
}

// In place: multiplies by the matrix of order 28, across pieces of n elements.
template <typename T>
void across(T* x, int64_t n) {
  T column[kOrder];
  for (int64_t j = 0; j < n; ++j) {
    for (int k = 0; k < kOrder; ++k) column[k] = x[k * n + j];
    for (int i = 0; i < kOrder; ++i) {
      T sum = 0;
      for (int k = 0; k < kOrder; ++k) {
        sum += (kRows[i] >> (kOrder - 1 - k) & 1) != 0 ? column[k] : -column[k];
      }
      x[i * n + j] = sum;
    }
  }
}

template <typename T>
void transform_rows(T* data, int64_t size, int64_t rows) {
  const bool wide = size % kOrder == 0;
  const int64_t piece = wide ? size / kOrder : size;
  const T factor = static_cast<T>(1.0 / std::sqrt(static_cast<double>(piece)));
  for (int64_t r = 0; r < rows; ++r) {
    T* row = data + r * size;
    for (int64_t i = 0; i < size; i += piece) transform(row + i, piece);
    if (wide) across(row, piece);
    for (int64_t i = 0; i < size; ++i) row[i] *= factor;
  }
}

// Computes in rows of float in scratch memory, or on the stack if there is too little of it.
Status transform_halves(KernelContext& ctx, const Tensor& mat, int64_t size, Tensor& out) {
  constexpr int64_t kStack = 2048;
  float stack[kStack];
  float* row = stack;
  if (size > kStack) {
    row = static_cast<float*>(ctx.scratch(static_cast<size_t>(size) * sizeof(float)));
    if (row == nullptr) {
      return ctx.fail(Code::MemoryAllocationFailed,
                      "rows of %lld half-precision elements need %lld bytes of scratch memory",
                      static_cast<long long>(size), static_cast<long long>(size * 4));
    }
  }
  const size_t n = static_cast<size_t>(size);
  for (int64_t i = 0; i < out.numel; i += size) {
    convert(element_at(mat, i), mat.dtype, row, DType::Float32, n);
    transform_rows(row, size, 1);
    convert(row, DType::Float32, element_at(out, i), out.dtype, n);
  }
  return {};
}

}  // namespace

// fast_hadamard_transform(mat, *, out): along the last dimension
Status fast_hadamard_transform_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& mat = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_floating(ctx, "mat", mat));
  RL_TRY(check_same_type(ctx, "mat", mat, out));
  const int64_t size = mat.rank == 0 ? 1 : mat.sizes[mat.rank - 1];
  const int64_t power = size % kOrder == 0 ? size / kOrder : size;
  if (size == 0 || (power & (power - 1)) != 0 || !mat.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "mat has shape %s; its last dimension must be 2^k or 28 * 2^k long, and its "
                    "elements in row-major order",
                    ShapeText(mat.shape()).text());
  }
  RL_TRY(ctx.resize_like(out, mat));
  if (!out.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "out does not lie in row-major order");
  }
  if (out.dtype == DType::Float64 || out.dtype == DType::Float32) {
    copy_all(mat, out);
    ctx.parallel(out.numel / size, kGrain / size + 1, [&](int64_t begin, int64_t end) {
      if (out.dtype == DType::Float64) {
        transform_rows(out.as<double>() + begin * size, size, end - begin);
      } else {
        transform_rows(out.as<float>() + begin * size, size, end - begin);
      }
    });
    return {};
  }
  return transform_halves(ctx, mat, size, out);
}

}  // namespace rushlight::kernels
