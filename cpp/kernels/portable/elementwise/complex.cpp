#include "rushlight/kernels/portable/elementwise/complex.h"

#include <algorithm>
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/loops/elementwise/complex.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/spectral/fft_plan.h"

namespace rushlight::kernels {
namespace {

const float* floats(const Complex* x) { return reinterpret_cast<const float*>(x); }
float* floats(Complex* x) { return reinterpret_cast<float*>(x); }

// R. Smith's division, which overflows only if the quotient does.
Complex divided(Complex a, Complex b) {
  if (std::fabs(b.re) >= std::fabs(b.im)) {
    if (b.re == 0 && b.im == 0) return {a.re / std::fabs(b.re), a.im / std::fabs(b.im)};
    const float ratio = b.im / b.re;
    const float scale = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale};
  }
  const float ratio = b.re / b.im;
  const float scale = b.re * ratio + b.im;
  return {(a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale};
}

// One operand, read as complex numbers in the order of the output.
class ComplexInput {
 public:
  void init(const EValue& value, const Tensor& out) {
    if (!value.is_tensor()) {
      std::fill_n(buffer_, kChunk, Complex{static_cast<float>(value.to_double()), 0.0F});
      return;
    }
    dtype_ = value.tensor().dtype;
    reader_.init(broadcast_view(value.tensor(), out), out);
    is_tensor_ = true;
  }

  const Complex* next(size_t n) {
    if (!is_tensor_) return buffer_;
    if (reader_.constant()) {
      convert(reader_.data(), dtype_, buffer_, DType::Complex64, 1);
      std::fill_n(buffer_, n, Complex(buffer_[0]));
      return buffer_;
    }
    const void* here = reader_.next(n, raw_);
    if (dtype_ == DType::Complex64) return static_cast<const Complex*>(here);
    convert(here, dtype_, buffer_, DType::Complex64, n);
    return buffer_;
  }

 private:
  StridedReader reader_;
  DType dtype_ = DType::Complex64;
  bool is_tensor_ = false;
  alignas(64) uint64_t raw_[kChunk];
  alignas(64) Complex buffer_[kChunk];
};

Status check_operand(KernelContext& ctx, const char* name, const EValue& value) {
  if (!value.is_tensor() || can_convert(value.tensor().dtype, DType::Complex64)) return {};
  return ctx.fail(Code::NotSupported, "%s is %s; beside complex64 only real types are supported",
                  name, dtype_name(value.tensor().dtype));
}

Status resize_broadcast(KernelContext& ctx, const EValue& a, const EValue& b, Tensor& out) {
  const Tensor* tensors[2];
  size_t n = 0;
  for (const EValue* value : {&a, &b}) {
    if (value->is_tensor()) tensors[n++] = &value->tensor();
  }
  Shape shape;
  RL_TRY(broadcast_shape(ctx, tensors, n, &shape));
  return ctx.resize(out, shape.span());
}

void apply(ComplexOp op, const Complex* a, const Complex* b, float factor, size_t n, Complex* out) {
  switch (op) {
    case ComplexOp::Add:
      return complex_loops().add(floats(a), floats(b), factor, 2 * n, floats(out));
    case ComplexOp::Multiply:
      return complex_loops().multiply(floats(a), floats(b), n, floats(out));
    case ComplexOp::Divide:
      for (size_t i = 0; i < n; ++i) out[i] = divided(a[i], b[i]);
      return;
  }
}

// Runs `body(in, out, n)` on all elements of a complex tensor, in the order of the output.
template <typename Out, typename Body>
Status for_each_run(KernelContext& ctx, const Tensor& in, Tensor& out, Body body) {
  RL_TRY(ctx.resize_like(out, in));
  if (out.numel == 0) return {};
  StridedReader reader;
  reader.init(broadcast_view(in, out), out);
  alignas(64) uint64_t raw[kChunk];
  Out* to = out.as<Out>();
  const size_t total = static_cast<size_t>(out.numel);
  for (size_t done = 0; done < total;) {
    const size_t n = std::min(kChunk, total - done);
    body(static_cast<const Complex*>(reader.next(n, raw)), to + done, n);
    done += n;
  }
  return {};
}

}  // namespace

Status complex_binary(KernelContext& ctx, ComplexOp op, const EValue& a, const EValue& b,
                      double factor, Tensor& out) {
  RL_TRY(check_operand(ctx, "self", a));
  RL_TRY(check_operand(ctx, "other", b));
  RL_TRY(check_dtype(ctx, "out", out, DType::Complex64));
  RL_TRY(resize_broadcast(ctx, a, b, out));
  if (out.numel == 0) return {};
  ComplexInput inputs[2];
  inputs[0].init(a, out);
  inputs[1].init(b, out);
  const size_t total = static_cast<size_t>(out.numel);
  for (size_t done = 0; done < total;) {
    const size_t n = std::min(kChunk, total - done);
    const Complex* x = inputs[0].next(n);
    apply(op, x, inputs[1].next(n), static_cast<float>(factor), n, out.as<Complex>() + done);
    done += n;
  }
  return {};
}

Status complex_scale(KernelContext& ctx, const Tensor& in, float factor, Tensor& out) {
  RL_TRY(check_dtype(ctx, "out", out, DType::Complex64));
  return for_each_run<Complex>(ctx, in, out, [&](const Complex* x, Complex* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = {x[i].re * factor, x[i].im * factor};
  });
}

Status complex_abs(KernelContext& ctx, const Tensor& in, Tensor& out) {
  RL_TRY(check_dtype(ctx, "out", out, DType::Float32));
  return for_each_run<float>(ctx, in, out, [](const Complex* x, float* y, size_t n) {
    complex_loops().abs(floats(x), n, y);
  });
}

// _conj_physical(self, *, out)
Status conj_physical_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_dtype(ctx, "self", in, DType::Complex64));
  RL_TRY(check_dtype(ctx, "out", out, DType::Complex64));
  return for_each_run<Complex>(ctx, in, out, [](const Complex* x, Complex* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = {x[i].re, -x[i].im};
  });
}

// complex(real, imag, *, out)
Status complex_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  RL_TRY(check_dtype(ctx, "real", args[0]->tensor(), DType::Float32));
  RL_TRY(check_dtype(ctx, "imag", args[1]->tensor(), DType::Float32));
  RL_TRY(check_dtype(ctx, "out", out, DType::Complex64));
  RL_TRY(resize_broadcast(ctx, *args[0], *args[1], out));
  CopyBlock block;
  for (size_t k = 0; k < 2; ++k) {
    const View view = broadcast_view(args[k]->tensor(), out);
    block.rank = 0;
    for (size_t d = 0; d < out.rank; ++d) {
      block.push(out.sizes[d], view.strides[d], 2 * static_cast<int64_t>(out.strides[d]));
    }
    strided_copy(view.data, out.as<float>() + k, block, sizeof(float));
  }
  return {};
}

// view_as_real_copy(self, *, out): adds a last dimension with the real and the imaginary part.
Status view_as_real_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_dtype(ctx, "self", in, DType::Complex64));
  RL_TRY(check_dtype(ctx, "out", out, DType::Float32));
  Shape shape(in.shape());
  if (!shape.push(2)) {
    return ctx.fail(Code::NotSupported, "self has %zu dimensions; at most %zu are supported",
                    static_cast<size_t>(in.rank), kMaxRank - 1);
  }
  RL_TRY(ctx.resize(out, shape.span()));
  CopyBlock block;
  for (size_t d = 0; d < in.rank; ++d) {
    block.push(in.sizes[d], 2 * static_cast<int64_t>(in.strides[d]), out.strides[d]);
  }
  block.push(2, 1, out.strides[in.rank]);
  strided_copy(in.data, out.data, block, sizeof(float));
  return {};
}

// view_as_complex_copy(self, *, out): the last dimension has the real and the imaginary part.
Status view_as_complex_copy_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& out = args[1]->tensor();
  RL_TRY(check_dtype(ctx, "self", in, DType::Float32));
  RL_TRY(check_dtype(ctx, "out", out, DType::Complex64));
  if (in.rank == 0 || in.sizes[in.rank - 1] != 2) {
    return ctx.fail(Code::InvalidArgument, "self has shape %s, but its last size must be 2",
                    ShapeText(in.shape()).text());
  }
  Shape shape(in.shape());
  --shape.rank;
  RL_TRY(ctx.resize(out, shape.span()));
  CopyBlock block;
  for (size_t d = 0; d < shape.rank; ++d) {
    block.push(in.sizes[d], in.strides[d], 2 * static_cast<int64_t>(out.strides[d]));
  }
  block.push(2, in.strides[shape.rank], 1);
  strided_copy(in.data, out.data, block, sizeof(float));
  return {};
}

}  // namespace rushlight::kernels
