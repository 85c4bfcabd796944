#include "rushlight/kernels/portable/helpers.h"

namespace rushlight::kernels {

Shape::Shape(Span<const int32_t> from) : rank(from.size() < kMaxRank ? from.size() : kMaxRank) {
  for (size_t i = 0; i < rank; ++i) sizes[i] = from[i];
}

bool Shape::push(int64_t size) {
  if (rank == kMaxRank || size < 0 || size > INT32_MAX) return false;
  sizes[rank++] = static_cast<int32_t>(size);
  return true;
}

Status wrap_dim(KernelContext& ctx, int64_t dim, size_t rank, size_t* wrapped) {
  const int64_t count = rank == 0 ? 1 : static_cast<int64_t>(rank);
  if (dim < -count || dim >= count) {
    return ctx.fail(Code::InvalidArgument,
                    "dim is %lld, but a tensor of rank %zu takes dims from %lld to %lld",
                    static_cast<long long>(dim), rank, static_cast<long long>(-count),
                    static_cast<long long>(count - 1));
  }
  *wrapped = static_cast<size_t>(dim < 0 ? dim + count : dim);
  return {};
}

Status wrap_dims(KernelContext& ctx, const EValue& dims, size_t rank, bool empty_is_all,
                 bool* flags) {
  const size_t count = rank == 0 ? 1 : rank;
  const bool all = dims.is_none() || (empty_is_all && dims.size() == 0);
  for (size_t i = 0; i < count; ++i) flags[i] = all;
  if (all) return {};
  for (size_t k = 0; k < dims.size(); ++k) {
    size_t dim = 0;
    RL_TRY(wrap_dim(ctx, dims.int_at(k), rank, &dim));
    if (flags[dim]) {
      return ctx.fail(Code::InvalidArgument, "dim %zu is named twice in the list of dims", dim);
    }
    flags[dim] = true;
  }
  return {};
}

Status shape_of_list(KernelContext& ctx, const EValue& list, Shape* shape) {
  shape->rank = 0;
  if (list.size() > kMaxRank) {
    return ctx.fail(Code::InvalidArgument, "size has %zu dimensions, at most %zu are supported",
                    list.size(), kMaxRank);
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const int64_t size = list.int_at(k);
    if (!shape->push(size)) {
      return ctx.fail(Code::InvalidArgument, "size[%zu] is %lld; a size is from 0 to 2147483647", k,
                      static_cast<long long>(size));
    }
  }
  return {};
}

Status check_dtype(KernelContext& ctx, const char* name, const Tensor& tensor, DType dtype) {
  if (tensor.dtype == dtype) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %s, but must be %s", name, dtype_name(tensor.dtype),
                  dtype_name(dtype));
}

Status check_rank(KernelContext& ctx, const char* name, const Tensor& tensor, size_t rank) {
  if (tensor.rank == rank) return {};
  return ctx.fail(Code::InvalidArgument, "%s has shape %s, but must have %zu dimensions", name,
                  ShapeText(tensor.shape()).text(), rank);
}

}  // namespace rushlight::kernels
