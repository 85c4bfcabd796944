// Scratch memory for work that is divided among threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/kernel.h"

namespace rushlight::kernels {

// Scratch memory in shares of equal size, one for each thread. What is computed in a share does not
// depend on the number of shares.
class ScratchShares {
 public:
  explicit ScratchShares(KernelContext& ctx);
  size_t bytes() const { return bytes_; }  // size of a share; 0 without scratch memory
  void* memory(int64_t share) const {
    return static_cast<uint8_t*>(memory_) + static_cast<size_t>(share) * bytes_;
  }
  // Calls body(share, first, stride) for every share, which computes items first, first + stride, …
  template <typename Body>
  void run(KernelContext& ctx, int64_t items, Body&& body) const {
    const int64_t used = items < count_ ? items : count_;
    ctx.parallel(used, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) body(share, share, used);
    });
  }

 private:
  int64_t count_ = 1;
  size_t bytes_ = 0;
  void* memory_ = nullptr;
};

}  // namespace rushlight::kernels
