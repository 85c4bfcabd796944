// Gradients of two-dimensional average pooling. Each input row gathers from the output rows whose
// windows cover it, so that rows are independent of each other.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/pooling/pool.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/rows.h"

namespace rushlight::kernels {
namespace {

constexpr size_t kSpatial = 2;

// A pooling whose "in" is the gradient that is written and whose "out" is the gradient that is
// read.
struct Backward {
  Pooling pooling;
  const Tensor* grad = nullptr;  // gradient of the outputs
  int64_t divisor = 0;           // if not 0, replaces the sizes of the windows
  Tensor* result = nullptr;
};

template <typename T>
class RowGradients {
 public:
  explicit RowGradients(const Backward& b)
      : b_(b),
        p_(b.pooling),
        grad_(*b.grad, compute_dtype(b.grad->dtype)),
        result_(*b.result, compute_dtype(b.grad->dtype)) {}

  // Computes input rows, numbered over images, channels and H.
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

  // Computes columns first to last - 1 of row i.
  void columns(int64_t plane, int64_t i, int64_t first, int64_t last, int64_t to) {
    const size_t n = static_cast<size_t>(last - first);
    T* acc = static_cast<T*>(result_.target(to, p_.in_w));
    std::fill(acc, acc + n, T{0});
    int64_t h = 0;
    int64_t end = 0;
    for (p_.h.outputs_over(i, &h, &end); h < end; ++h) {
      const PoolTaps rows = p_.h.taps(h);
      if (i < rows.begin || i >= rows.end || (i - rows.begin) % rows.spacing != 0) continue;
      for (int64_t w = 0; w < p_.w.out; w += static_cast<int64_t>(kChunk)) {
        const size_t count = std::min(static_cast<size_t>(p_.w.out - w), kChunk);
        const int64_t offset = out_offset(p_, plane, h, w);
        const T* g = static_cast<const T*>(grad_.read(offset, p_.out_w, count));
        add_means(h, w, g, count, first, last, acc);
      }
    }
    result_.store(to, p_.in_w, n);
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
  RowReader grad_;
  RowWriter result_;
};

Status gather_gradient(KernelContext& ctx, const Tensor& self, const Shape& shape, Backward& b) {
  RL_TRY(check_pool_gradient(ctx, self, shape, *b.grad, *b.result));
  Pooling& p = b.pooling;
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
