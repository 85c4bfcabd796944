#include "rushlight/kernels/portable/reduction/reduce.h"

#include <algorithm>

namespace rushlight::kernels {

void Nest::add(int64_t size, int64_t stride, int64_t second_stride) {
  if (size == 1) return;
  if (dims_ > 0 && stride == strides_[dims_ - 1] * sizes_[dims_ - 1] &&
      second_stride == second_strides_[dims_ - 1] * sizes_[dims_ - 1]) {
    sizes_[dims_ - 1] *= size;
    return;
  }
  sizes_[dims_] = size;
  strides_[dims_] = stride;
  second_strides_[dims_] = second_stride;
  ++dims_;
}

int64_t Nest::count() const {
  int64_t product = 1;
  for (size_t d = 0; d < dims_; ++d) product *= sizes_[d];
  return product;
}

void Nest::drop_inner() {
  --dims_;
  for (size_t d = 0; d < dims_; ++d) {
    sizes_[d] = sizes_[d + 1];
    strides_[d] = strides_[d + 1];
    second_strides_[d] = second_strides_[d + 1];
  }
}

void Nest::seek(int64_t position) {
  offset_ = 0;
  second_offset_ = 0;
  for (size_t d = 0; d < dims_; ++d) {
    index_[d] = position % sizes_[d];
    position /= sizes_[d];
    offset_ += index_[d] * strides_[d];
    second_offset_ += index_[d] * second_strides_[d];
  }
}

bool Nest::next() {
  for (size_t d = 0; d < dims_; ++d) {
    offset_ += strides_[d];
    second_offset_ += second_strides_[d];
    if (++index_[d] < sizes_[d]) return true;
    offset_ -= strides_[d] * sizes_[d];
    second_offset_ -= second_strides_[d] * sizes_[d];
    index_[d] = 0;
  }
  return false;
}

Shape reduced_shape(const Tensor& in, const bool* reduced, bool keepdim) {
  Shape shape;
  for (size_t d = 0; d < in.rank; ++d) {
    if (!reduced[d]) shape.push(in.sizes[d]);
    if (reduced[d] && keepdim) shape.push(1);
  }
  return shape;
}

ReducePlan plan_reduction(const Tensor& in, const bool* reduced, bool keepdim, const Tensor& out) {
  ReducePlan plan;
  int64_t out_strides[kMaxRank] = {};
  size_t out_dim = 0;
  for (size_t d = 0; d < in.rank; ++d) {
    if (!reduced[d]) out_strides[d] = out.strides[out_dim];
    if (!reduced[d] || keepdim) ++out_dim;
  }
  bool first = true;
  for (size_t k = in.rank; k-- > 0;) {
    const size_t d = in.dim_order[k];
    if (in.sizes[d] == 1) continue;
    if (first) plan.inner_reduced = reduced[d];
    first = false;
    if (reduced[d]) {
      plan.reduced.add(in.sizes[d], in.strides[d], 0);
    } else {
      plan.kept.add(in.sizes[d], in.strides[d], out_strides[d]);
    }
  }
  plan.reduced_count = plan.reduced.count();
  Nest& inner = plan.inner_reduced ? plan.reduced : plan.kept;
  if (inner.dims() > 0) {
    plan.run = inner.size(0);
    plan.run_stride = inner.second_stride(0);
    inner.drop_inner();
  }
  return plan;
}

void write_run(const void* values, DType from, size_t n, Tensor& out, int64_t offset,
               int64_t stride) {
  const int64_t size = static_cast<int64_t>(element_size(out.dtype));
  uint8_t* dst = out.as<uint8_t>() + offset * size;
  if (stride == 1 || n == 1) {
    convert(values, from, dst, out.dtype, n);
    return;
  }
  const uint8_t* src = static_cast<const uint8_t*>(values);
  for (size_t i = 0; i < n; ++i) {
    convert(src, from, dst, out.dtype, 1);
    src += element_size(from);
    dst += stride * size;
  }
}

}  // namespace rushlight::kernels
