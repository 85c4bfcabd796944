#include "rushlight/kernels/portable/index/indexing.h"

namespace rushlight::kernels {
namespace {

// True if all n indices are from `lowest`, which is at most 0, to size - 1.
template <typename T>
bool all_in_range(const T* index, int64_t n, int64_t lowest, int64_t size) {
  const uint64_t count = static_cast<uint64_t>(size - lowest);
  bool fits = true;
  for (int64_t k = 0; k < n; ++k) {
    // Unsigned: an index below `lowest` exceeds any count, and a difference may overflow.
    fits &= static_cast<uint64_t>(index[k]) - static_cast<uint64_t>(lowest) < count;
  }
  return fits;
}

}  // namespace

Status check_index_type(KernelContext& ctx, const char* name, const Tensor& index) {
  if (index.dtype == DType::Int64 || index.dtype == DType::Int32 || index.numel == 0) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %s, but must be int64 or int32", name,
                  dtype_name(index.dtype));
}

Status index_out_of_range(KernelContext& ctx, int64_t index, size_t dim, int64_t size,
                          int64_t lowest) {
  return ctx.fail(Code::InvalidArgument,
                  "index %lld is out of bounds for dimension %zu, which takes %lld to %lld",
                  static_cast<long long>(index), dim, static_cast<long long>(lowest),
                  static_cast<long long>(size - 1));
}

Status check_indices(KernelContext& ctx, const Tensor& index, size_t dim, int64_t size,
                     int64_t lowest) {
  const int64_t n = index.numel;
  const bool fits = index.dtype == DType::Int64
                        ? all_in_range(index.as<int64_t>(), n, lowest, size)
                        : all_in_range(index.as<int32_t>(), n, lowest, size);
  for (int64_t k = 0; k < n && !fits; ++k) {
    const int64_t i = index_at(index, k);
    if (i < lowest || i >= size) return index_out_of_range(ctx, i, dim, size, lowest);
  }
  return {};
}

FoldFn fold_elements(Fold fold, DType dtype) {
  return fold_loops().at[static_cast<size_t>(fold)][static_cast<size_t>(dtype)];
}

}  // namespace rushlight::kernels
