// Counts how often each integer occurs.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// Calls body(first, n, values) for the integers, piece by piece.
template <typename Body>
void each_piece(const Tensor& self, Body body) {
  int64_t values[kChunk];
  for (int64_t i = 0; i < self.numel; i += static_cast<int64_t>(kChunk)) {
    const size_t n = static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), self.numel - i));
    convert(element_at(self, i), self.dtype, values, DType::Int64, n);
    body(i, n, values);
  }
}

// Adds the weights, or ones, to the counts of the integers.
template <typename T>
void add_weights(const Tensor& self, const Tensor* weights, const Tensor& out) {
  T* sums = out.as<T>();
  std::fill_n(sums, out.numel, T(0));
  T piece[kChunk];
  std::fill_n(piece, kChunk, T(1));
  each_piece(self, [&](int64_t first, size_t n, const int64_t* places) {
    if (weights != nullptr) {
      convert(element_at(*weights, first), weights->dtype, piece, out.dtype, n);
    }
    for (size_t i = 0; i < n; ++i) sums[places[i]] += piece[i];
  });
}

}  // namespace

// bincount(self, weights, minlength, *, out)
Status bincount_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor* weights = args[1]->tensor_or_null();
  const int64_t least = args[2]->to_int();
  Tensor& out = args[3]->tensor();
  RL_TRY(check_rank(ctx, "self", self, 1));
  RL_TRY(check_real(ctx, "self", self));
  if (is_floating(self.dtype) || self.dtype == DType::Bool) {
    return ctx.fail(Code::NotSupported, "self is %s, but must be of integers",
                    dtype_name(self.dtype));
  }
  if (weights != nullptr) {
    RL_TRY(check_real(ctx, "weights", *weights));
    RL_TRY(check_rank(ctx, "weights", *weights, 1));
    if (weights->numel != self.numel) {
      return ctx.fail(Code::InvalidArgument, "self has %lld elements and weights %lld",
                      static_cast<long long>(self.numel), static_cast<long long>(weights->numel));
    }
  }
  const bool single = weights != nullptr && weights->dtype == DType::Float32;
  const DType type = weights == nullptr ? DType::Int64 : (single ? DType::Float32 : DType::Float64);
  RL_TRY(check_dtype(ctx, "out", out, type));
  int64_t lowest = std::min<int64_t>(least, 0);
  int64_t size = std::max<int64_t>(least, 0);
  each_piece(self, [&](int64_t, size_t n, const int64_t* values) {
    for (size_t i = 0; i < n; ++i) {
      lowest = std::min(lowest, values[i]);
      // INT64_MAX + 1 would overflow.
      size = std::max(size, values[i] == INT64_MAX ? values[i] : values[i] + 1);
    }
  });
  Shape shape;
  if (lowest < 0 || !shape.push(size)) {
    return ctx.fail(Code::InvalidArgument,
                    "self holds %lld to %lld and minlength is %lld; nothing may be negative, nor "
                    "too great for a size",
                    static_cast<long long>(lowest), static_cast<long long>(size - 1),
                    static_cast<long long>(least));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (type == DType::Int64) {
    add_weights<int64_t>(self, nullptr, out);
  } else if (type == DType::Float32) {
    add_weights<float>(self, weights, out);
  } else {
    add_weights<double>(self, weights, out);
  }
  return {};
}

}  // namespace rushlight::kernels
