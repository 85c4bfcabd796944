// mm, bmm, addmm and linear. float32 uses the blocked product of gemm.h, every other type the
// product of matmul_any.h.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/linalg/gemm.h"
#include "rushlight/kernels/portable/linalg/matmul_any.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {
namespace {

// A matrix inside of a tensor: element (i, j) is at offset + i * row + j * col.
struct Matrix {
  const Tensor* tensor = nullptr;
  int64_t offset = 0;
  int64_t row = 0;
  int64_t col = 0;
};

// out = alpha * a b + beta * add; `add` may be absent.
struct Matmul {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Matrix a;
  Matrix b;
  Matrix add;
  Matrix out;
  const EValue* alpha = nullptr;  // nullptr is 1
  const EValue* beta = nullptr;
};

// The last two dimensions as a matrix.
Matrix matrix_of(const Tensor& tensor) {
  return {&tensor, 0, tensor.strides[tensor.rank - 2], tensor.strides[tensor.rank - 1]};
}

void run_float(const Workspace& work, const Matmul& mm) {
  const auto floats = [](const Matrix& m) { return m.tensor->as<float>() + m.offset; };
  Product p;
  p.m = mm.m;
  p.n = mm.n;
  p.k = mm.k;
  p.a = {floats(mm.a), mm.a.row, mm.a.col, nullptr, nullptr};
  p.b = {floats(mm.b), mm.b.col, mm.b.row, nullptr, nullptr};
  p.c = floats(mm.out);
  p.c_row = mm.out.row;
  p.c_col = mm.out.col;
  if (mm.alpha != nullptr) p.alpha = static_cast<float>(mm.alpha->to_double());
  if (mm.beta != nullptr) p.beta = static_cast<float>(mm.beta->to_double());
  if (p.alpha == 0) p.k = 0;  // as in BLAS, NaN in the factors is ignored then
  if (mm.add.tensor != nullptr) {
    p.add = floats(mm.add);
    p.add_row = mm.add.row;
    p.add_col = mm.add.col;
  }
  multiply(work, p);
}

AnyMatrix any_matrix(const Matrix& m) {
  if (m.tensor == nullptr) return {};
  return {element_at(*m.tensor, m.offset), m.row, m.col};
}

void run(const Workspace& work, const Matmul& mm) {
  const DType dtype = mm.out.tensor->dtype;
  if (dtype == DType::Float32) return run_float(work, mm);
  AnyProduct p;
  p.dtype = dtype;
  p.m = mm.m;
  p.n = mm.n;
  p.k = mm.k;
  p.a = any_matrix(mm.a);
  p.b = any_matrix(mm.b);
  p.add = any_matrix(mm.add);
  p.out = any_matrix(mm.out);
  p.alpha = mm.alpha;
  p.beta = mm.beta;
  multiply_any(work, p);
}

// Checks types and shapes of two factors, called `a_name` and `b_name` in messages, and sets the
// sizes of `mm`.
Status prepare(KernelContext& ctx, const char* a_name, const Tensor& a, const char* b_name,
               const Tensor& b, size_t rank, const Tensor& out, Matmul* mm) {
  RL_TRY(check_rank(ctx, a_name, a, rank));
  RL_TRY(check_rank(ctx, b_name, b, rank));
  RL_TRY(check_same_type(ctx, a_name, a, out));
  RL_TRY(check_same_type(ctx, b_name, b, out));
  if (!can_multiply(out.dtype)) {
    return ctx.fail(Code::NotSupported, "%s is %s, for which there is no matrix product", a_name,
                    dtype_name(a.dtype));
  }
  if (a.sizes[rank - 1] != b.sizes[rank - 2] || (rank == 3 && a.sizes[0] != b.sizes[0])) {
    return ctx.fail(Code::InvalidArgument,
                    "%s has shape %s and %s has %s, which cannot be multiplied", a_name,
                    ShapeText(a.shape()).text(), b_name, ShapeText(b.shape()).text());
  }
  mm->m = a.sizes[rank - 2];
  mm->k = a.sizes[rank - 1];
  mm->n = b.sizes[rank - 1];
  mm->a = matrix_of(a);
  mm->b = matrix_of(b);
  return {};
}

// `self` as an m x n matrix: 1-d and 0-d tensors and sizes of 1 are repeated.
Status broadcast_addend(KernelContext& ctx, const Tensor& self, Matmul* mm) {
  const int64_t wanted[] = {mm->m, mm->n};
  int64_t strides[] = {0, 0};
  bool fits = self.rank <= 2;
  for (size_t d = 0; fits && d < self.rank; ++d) {
    const size_t to = d + 2 - self.rank;
    fits = self.sizes[d] == 1 || self.sizes[d] == wanted[to];
    strides[to] = self.sizes[d] == 1 ? 0 : self.strides[d];
  }
  if (!fits) {
    return ctx.fail(Code::InvalidArgument,
                    "self has shape %s, which does not broadcast to the product's (%lld, %lld)",
                    ShapeText(self.shape()).text(), static_cast<long long>(mm->m),
                    static_cast<long long>(mm->n));
  }
  mm->add = {&self, 0, strides[0], strides[1]};
  return {};
}

// Merges the leading dimensions of linear's input and output as far as both allow. The last merged
// dimension is the rows of the product; the others are outer loops.
CopyBlock leading_dims(const Tensor& input, const Tensor& out) {
  CopyBlock block;
  for (size_t d = 0; d + 1 < input.rank; ++d) {
    block.push(input.sizes[d], input.strides[d], out.strides[d]);
  }
  return block;
}

// Runs the product for each index of the outer dimensions, starting at dimension `dim`.
void run_nested(const Workspace& work, const CopyBlock& dims, size_t dim, Matmul mm) {
  if (dim + 1 >= dims.rank) return run(work, mm);
  for (int64_t i = 0; i < dims.sizes[dim]; ++i) {
    run_nested(work, dims, dim + 1, mm);
    mm.a.offset += dims.from[dim];
    mm.out.offset += dims.to[dim];
  }
}

}  // namespace

// mm(self, mat2, *, out)
Status mm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& mat2 = args[1]->tensor();
  Tensor& out = args[2]->tensor();
  Matmul mm;
  RL_TRY(prepare(ctx, "self", self, "mat2", mat2, 2, out, &mm));
  const int32_t shape[] = {self.sizes[0], mat2.sizes[1]};
  RL_TRY(ctx.resize(out, shape));
  mm.out = matrix_of(out);
  run(Workspace(ctx), mm);
  return {};
}

// addmm(self, mat1, mat2, *, beta, alpha, out)
Status addmm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& mat1 = args[1]->tensor();
  const Tensor& mat2 = args[2]->tensor();
  Tensor& out = args[5]->tensor();
  Matmul mm;
  RL_TRY(prepare(ctx, "mat1", mat1, "mat2", mat2, 2, out, &mm));
  RL_TRY(check_same_type(ctx, "self", self, out));
  RL_TRY(broadcast_addend(ctx, self, &mm));
  mm.beta = args[3];
  mm.alpha = args[4];
  // If beta is zero, self is ignored, even if it is NaN.
  if (mm.beta->to_double() == 0) mm.add = {};
  const int32_t shape[] = {mat1.sizes[0], mat2.sizes[1]};
  RL_TRY(ctx.resize(out, shape));
  mm.out = matrix_of(out);
  run(Workspace(ctx), mm);
  return {};
}

// bmm(self, mat2, *, out)
Status bmm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& mat2 = args[1]->tensor();
  Tensor& out = args[2]->tensor();
  Matmul mm;
  RL_TRY(prepare(ctx, "self", self, "mat2", mat2, 3, out, &mm));
  const int32_t shape[] = {self.sizes[0], self.sizes[1], mat2.sizes[2]};
  RL_TRY(ctx.resize(out, shape));
  mm.out = matrix_of(out);
  const Workspace work(ctx);
  // Large products are divided among the threads one after the other.
  const int64_t each = std::max<int64_t>(mm.m * mm.n * mm.k, 1);
  const int count = each > 8 * kProductGrain ? 1 : work.shares();
  const auto one = [&](const Workspace& part, int64_t batch) {
    Matmul here = mm;
    here.a.offset = batch * self.strides[0];
    here.b.offset = batch * mat2.strides[0];
    here.out.offset = batch * out.strides[0];
    run(part, here);
  };
  if (count == 1) {
    for (int64_t batch = 0; batch < self.sizes[0]; ++batch) one(work, batch);
    return {};
  }
  Shares shares(count);
  ctx.parallel(self.sizes[0], kProductGrain / each + 1, [&](int64_t begin, int64_t end) {
    const int share = shares.take();
    const Workspace part(work, share, count);
    for (int64_t batch = begin; batch < end; ++batch) one(part, batch);
    shares.give(share);
  });
  return {};
}

// linear(input, weight, bias, *, out): input [..., in], weight [out, in] or [in].
Status linear_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& input = args[0]->tensor();
  const Tensor& weight = args[1]->tensor();
  const Tensor* bias = args[2]->tensor_or_null();
  Tensor& out = args[3]->tensor();
  const bool vector = weight.rank == 1;
  if (input.rank == 0 || weight.rank == 0 || weight.rank > 2 ||
      input.sizes[input.rank - 1] != weight.sizes[weight.rank - 1]) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s and weight has %s; their last sizes must be equal",
                    ShapeText(input.shape()).text(), ShapeText(weight.shape()).text());
  }
  Matmul mm;
  mm.n = vector ? 1 : weight.sizes[0];
  mm.k = input.sizes[input.rank - 1];
  if (bias != nullptr && bias->numel != 1 && !(bias->rank == 1 && bias->sizes[0] == mm.n)) {
    return ctx.fail(Code::InvalidArgument, "bias has shape %s, but weight has %lld outputs",
                    ShapeText(bias->shape()).text(), static_cast<long long>(mm.n));
  }
  RL_TRY(check_same_type(ctx, "input", input, out));
  RL_TRY(check_same_type(ctx, "weight", weight, out));
  if (bias != nullptr) RL_TRY(check_same_type(ctx, "bias", *bias, out));
  if (!can_multiply(out.dtype)) {
    return ctx.fail(Code::NotSupported, "input is %s, for which there is no matrix product",
                    dtype_name(input.dtype));
  }
  Shape shape(input.shape());
  --shape.rank;
  if (!vector) shape.push(mm.n);
  RL_TRY(ctx.resize(out, shape.span()));
  CopyBlock dims = leading_dims(input, out);
  if (!dims.simplify()) return {};
  const size_t rows = dims.rank - 1;
  mm.m = dims.sizes[rows];
  mm.a = {&input, 0, dims.from[rows], input.strides[input.rank - 1]};
  mm.b = {&weight, 0, weight.strides[weight.rank - 1], vector ? 0 : weight.strides[0]};
  mm.out = {&out, 0, dims.to[rows], vector ? 1 : out.strides[out.rank - 1]};
  if (bias != nullptr) mm.add = {bias, 0, 0, bias->numel == 1 ? 0 : 1};
  run_nested(Workspace(ctx), dims, 0, mm);
  return {};
}

}  // namespace rushlight::kernels
