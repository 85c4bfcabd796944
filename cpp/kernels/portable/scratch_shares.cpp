#include "rushlight/kernels/portable/scratch_shares.h"

#include <algorithm>

namespace rushlight::kernels {

ScratchShares::ScratchShares(KernelContext& ctx) {
  constexpr size_t kShareBytes = 256 * 1024;
  const size_t left = ctx.scratch_left();
  const size_t whole = std::max<size_t>(left / kShareBytes, 1);
  count_ = static_cast<int64_t>(std::min(whole, ctx.threads()));
  bytes_ = std::min(left, kShareBytes) / KernelContext::kScratchAlignment *
           KernelContext::kScratchAlignment;
  memory_ = bytes_ > 0 ? ctx.scratch(bytes_ * static_cast<size_t>(count_)) : nullptr;
  if (memory_ == nullptr) {
    count_ = 1;
    bytes_ = 0;
  }
}

}  // namespace rushlight::kernels
