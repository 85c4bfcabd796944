// repeat_interleave: an index that repeats each position a given number of times.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"

namespace rushlight::kernels {

// repeat_interleave(repeats, output_size, *, out): repeats position i repeats[i] times.
Status repeat_interleave_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& repeats = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  RL_TRY(check_index_type(ctx, "repeats", repeats));
  RL_TRY(check_rank(ctx, "repeats", repeats, 1));
  RL_TRY(check_same_type(ctx, "repeats", repeats, out));
  int64_t total = 0;
  for (int64_t k = 0; k < repeats.numel; ++k) {
    const int64_t times = index_at(repeats, k);
    if (times < 0 || times > INT32_MAX - total) {
      return ctx.fail(
          Code::InvalidArgument,
          "repeats[%lld] is %lld, but must not be negative, nor make the result too long",
          static_cast<long long>(k), static_cast<long long>(times));
    }
    total += times;
  }
  if (int_or(*args[1], total) != total) {
    return ctx.fail(Code::InvalidArgument, "output_size is %lld, but repeats add up to %lld",
                    static_cast<long long>(args[1]->to_int()), static_cast<long long>(total));
  }
  const int32_t size = static_cast<int32_t>(total);
  RL_TRY(ctx.resize(out, {&size, 1}));
  int64_t at = 0;
  for (int64_t k = 0; k < repeats.numel; ++k) {
    const int64_t end = at + index_at(repeats, k);
    if (out.dtype == DType::Int64) {
      std::fill(out.as<int64_t>() + at, out.as<int64_t>() + end, k);
    } else {
      std::fill(out.as<int32_t>() + at, out.as<int32_t>() + end, static_cast<int32_t>(k));
    }
    at = end;
  }
  return {};
}

}  // namespace rushlight::kernels
