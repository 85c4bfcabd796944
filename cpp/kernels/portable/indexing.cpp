#include "rushlight/kernels/portable/indexing.h"

namespace rushlight::kernels {
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

FoldFn fold_elements(Fold fold, DType dtype) {
  return fold_loops().at[static_cast<size_t>(fold)][static_cast<size_t>(dtype)];
}

}  // namespace rushlight::kernels
