// Gradients of two-dimensional pooling. Each row of the input gathers from the rows of outputs
// whose windows meet it, so that rows are independent of each other.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"
#include "rushlight/kernels/portable/strided_copy.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kSpatial = 2;

// A pooling whose "in" is the gradient that is written, and whose "out" the one that is read.
struct Backward {
  Pooling pooling;
  Pooling places;                   // the same, with the strides of `indices`
  const Tensor* grad = nullptr;     // of the outputs
  const Tensor* indices = nullptr;  // of the maxima; nullptr for means
  int64_t divisor = 0;              // of means, if it overrides the sizes of the windows
  Tensor* result = nullptr;
};

template <typename T>
class RowGradients {
 public:
  explicit RowGradients(const Backward& b)
      : b_(b),
        p_(b.pooling),
        places_(b.places),
        grad_(*b.grad, compute_dtype(b.grad->dtype)),
        indices_(b.indices != nullptr ? *b.indices : *b.grad, DType::Int64),
        result_(*b.result, compute_dtype(b.grad->dtype)) {}

  // Rows of the input, counted over images, channels and H.
  void run(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / p_.h.in;
      const int64_t i = row % p_.h.in;
      const int64_t to = plane / p_.c * p_.in_n + plane % p_.c * p_.in_c + i * p_.in_h;
      for (int64_t first = 0; first < p_.w.in; first += static_cast<int64_t>(kChunk)) {
        const int64_t last = std::min(first + static_cast<int64_t>(kChunk), p_.w.in);
        columns(plane, i, first, last, to + first * p_.in_w);
      }
    }
  }

 private:
  static int64_t out_offset(const Pooling& p, int64_t plane, int64_t h, int64_t w) {
    return plane / p.c * p.out_n + plane % p.c * p.out_c + h * p.out_h + w * p.out_w;
  }

  // Columns first to last - 1 of row i.
  void columns(int64_t plane, int64_t i, int64_t first, int64_t last, int64_t to) {
    const size_t n = static_cast<size_t>(last - first);
    T* acc = static_cast<T*>(result_.target(to, p_.in_w));
    std::fill(acc, acc + n, T{0});
    int64_t h = 0;
    int64_t end = 0;
    for (p_.h.outputs_over(i, &h, &end); h < end; ++h) {
      const PoolTaps rows = p_.h.taps(h);
      if (i < rows.begin || i >= rows.end || (i - rows.begin) % rows.step != 0) continue;
      for (int64_t w = 0; w < p_.w.out; w += static_cast<int64_t>(kChunk)) {
        const size_t count = std::min(static_cast<size_t>(p_.w.out - w), kChunk);
        const int64_t offset = out_offset(p_, plane, h, w);
        const T* g = static_cast<const T*>(grad_.read(offset, p_.out_w, count));
        if (b_.indices != nullptr) {
          add_maxima(i, out_offset(places_, plane, h, w), g, count, first, last, acc);
        } else {
          add_means(h, w, g, count, first, last, acc);
        }
      }
    }
    result_.store(to, p_.in_w, n);
  }

  void add_maxima(int64_t i, int64_t offset, const T* g, size_t count, int64_t first, int64_t last,
                  T* acc) {
    const int64_t* index = static_cast<const int64_t*>(indices_.read(offset, places_.out_w, count));
    const int64_t row = i * p_.w.in;
    for (size_t k = 0; k < count; ++k) {
      const int64_t column = index[k] - row - first;
      // Without a branch, which would be foretold wrongly half of the time.
      const bool here = column >= 0 && column < last - first;
      acc[here ? column : 0] += here ? g[k] : T{0};
    }
  }

  void add_means(int64_t h, int64_t w, const T* g, size_t count, int64_t first, int64_t last,
                 T* acc) {
    const int64_t rows = p_.h.window(h).count;
    for (size_t k = 0; k < count; ++k) {
      const PoolWindow window = p_.w.window(w + static_cast<int64_t>(k));
      const T divisor = static_cast<T>(b_.divisor != 0 ? b_.divisor : rows * window.count);
      const T share = g[k] / divisor;
      const int64_t end = std::min(window.end, last);
      for (int64_t j = std::max(window.begin, first); j < end; ++j) acc[j - first] += share;
    }
  }

  const Backward& b_;
  const Pooling& p_;
  const Pooling& places_;
  RowReader grad_;
  RowReader indices_;
  RowWriter result_;
};

// The gradients are of one floating type, and that of the outputs has the shape of the outputs.
Status check_gradient(KernelContext& ctx, const Tensor& self, const Shape& shape,
                      const Backward& b) {
  RL_TRY(check_floating(ctx, "grad_output", *b.grad));
  RL_TRY(check_same_type(ctx, "grad_output", *b.grad, *b.result));
  RL_TRY(check_same_type(ctx, "self", self, *b.result));
  for (const Tensor* tensor : {b.grad, b.indices}) {
    if (tensor == nullptr) continue;
    const char* name = tensor == b.grad ? "grad_output" : "indices";
    const Span<const int32_t> sizes = tensor->shape();
    if (sizes.size() == shape.rank && std::equal(sizes.begin(), sizes.end(), shape.sizes)) continue;
    return ctx.fail(Code::InvalidArgument, "%s has shape %s, but the pooling gives %s", name,
                    ShapeText(sizes).text(), ShapeText(shape.span()).text());
  }
  return {};
}

// Every index lies in the window that it is the maximum of.
Status check_maxima(KernelContext& ctx, const Pooling& p, const Tensor& indices) {
  const auto inside = [](const PoolTaps& taps, int64_t at) {
    if (at < taps.begin || at >= taps.end) return false;
    return taps.step == 1 || (at - taps.begin) % taps.step == 0;
  };
  const int64_t* values = indices.as<int64_t>();
  for (int64_t line = 0; line < p.lines(); ++line) {
    const PoolLine at = channel_line(p, line);
    const PoolTaps rows = p.h.taps(at.h);
    for (int64_t w = 0; w < p.w.out; ++w) {
      const int64_t index = values[at.to + w * p.out_w];
      // An image has so few pixels that 32 bits divide quickly.
      const bool small = index >= 0 && index <= INT32_MAX;
      const int64_t row = small ? static_cast<int32_t>(index) / static_cast<int32_t>(p.w.in) : -1;
      if (inside(rows, row) && inside(p.w.taps(w), index - row * p.w.in)) continue;
      return ctx.fail(Code::InvalidArgument,
                      "indices has %lld at row %lld, column %lld of the outputs, which is not in "
                      "that window",
                      static_cast<long long>(index), static_cast<long long>(at.h),
                      static_cast<long long>(w));
    }
  }
  return {};
}

Status gather_gradient(KernelContext& ctx, const Tensor& self, const Shape& shape, Backward& b) {
  RL_TRY(check_gradient(ctx, self, shape, b));
  Pooling& p = b.pooling;
  if (b.indices != nullptr && b.grad->numel > 0) {
    RL_TRY(check_dtype(ctx, "indices", *b.indices, DType::Int64));
    b.places = p;
    b.places.take_strides(self, *b.indices, kSpatial);
    RL_TRY(check_maxima(ctx, b.places, *b.indices));
  }
  RL_TRY(ctx.resize_like(*b.result, self));
  if (b.result->numel == 0) return {};
  p.take_strides(*b.result, *b.grad, kSpatial);
  const int64_t rows = p.n * p.c * p.h.in;
  ctx.parallel(rows, pool_grain(4 * p.w.in), [&](int64_t begin, int64_t end) {
    if (b.grad->dtype == DType::Float64) return RowGradients<double>(b).run(begin, end);
    RowGradients<float>(b).run(begin, end);
  });
  return {};
}

}  // namespace

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation,
//                                  ceil_mode, indices, *, grad_input)
Status max_pool2d_with_indices_backward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[1]->tensor();
  Backward b;
  b.grad = &args[0]->tensor();
  b.indices = &args[7]->tensor();
  b.result = &args[8]->tensor();
  Shape shape;
  const PoolArguments arguments = {*args[2], *args[3], *args[4], args[5], args[6]->to_bool()};
  RL_TRY(read_pooling(ctx, self, kSpatial, arguments, &b.pooling, &shape));
  return gather_gradient(ctx, self, shape, b);
}

// avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode,
//                     count_include_pad, divisor_override, *, grad_input)
Status avg_pool2d_backward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[1]->tensor();
  Backward b;
  b.grad = &args[0]->tensor();
  b.result = &args[8]->tensor();
  Shape shape;
  const PoolArguments arguments = {*args[2], *args[3], *args[4], nullptr, args[5]->to_bool()};
  RL_TRY(read_pooling(ctx, self, kSpatial, arguments, &b.pooling, &shape));
  b.pooling.h.count_padding = b.pooling.w.count_padding = args[6]->to_bool();
  b.divisor = int_or(*args[7], 0);
  if (b.divisor == 0 && !args[7]->is_none()) {
    return ctx.fail(Code::InvalidArgument, "divisor_override is 0, but must be another number");
  }
  return gather_gradient(ctx, self, shape, b);
}

// _adaptive_avg_pool2d_backward(grad_output, self, *, out)
Status adaptive_avg_pool2d_backward_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[1]->tensor();
  Backward b;
  b.grad = &args[0]->tensor();
  b.result = &args[2]->tensor();
  const Tensor& grad = *b.grad;
  if (grad.rank < kSpatial) {
    return ctx.fail(Code::InvalidArgument, "grad_output has shape %s, but must have self's rank",
                    ShapeText(grad.shape()).text());
  }
  const int64_t sizes[] = {grad.sizes[grad.rank - 2], grad.sizes[grad.rank - 1]};
  Shape shape;
  RL_TRY(adaptive_windows(ctx, self, kSpatial, sizes, &b.pooling, &shape));
  return gather_gradient(ctx, self, shape, b);
}

}  // namespace rushlight::kernels
