// The float32 matrix product that matmul, linear and convolution share.
//
// C is computed in tiles that stay in registers. A's rows are packed in panels as high as a tile,
// one block of them at a time, into scratch memory. Then each panel of B, which is as wide as a
// tile and k_block long so that it fits into L1, is packed once and multiplied by all of A's
// panels. Factors are packed from any strides, so a transposed or permuted operand needs no copy.
// For few rows there are algorithms that read B in place. With little scratch memory the blocks get
// smaller, down to a size that fits on the stack; the result is the same up to rounding.
//
// The engine has its own product (engine/kernels/products/product.h): its right operand is packed
// when a model is exported, and its epilogue runs fused operators. This product gets both operands
// at run time, with any strides, unrolls images while it packs, and adapts to the scratch memory of
// a call. Each of them would need the other's packing and its branches around every tile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/linalg/gemm.h"
#include "rushlight/kernels/portable/loops/reduction/window.h"

namespace rushlight::kernels {

// The weights of a convolution for which a single stride along k does not suffice. k is a (channel,
// tap) pair as in Window, and the taps are three-dimensional.
struct WeightTaps {
  int64_t channel_stride = 0;
  int64_t tap_strides[kMaxSpatial] = {};
  int32_t taps[kMaxSpatial] = {};
  int32_t channels = 0;
  bool channels_innermost = false;
};

// One factor of a product: element (i, k), where i is a row of A or a column of B.
struct Factor {
  const float* data = nullptr;
  int64_t i_stride = 0;
  int64_t k_stride = 0;
  // If not null, the factor is a convolution's input: i is an output pixel, k a (channel, tap)
  // pair.
  const Window* window = nullptr;
  // Set with `window`: how it is packed. A program without convolutions does not link that.
  decltype(WindowLoops::pack) pack_window = nullptr;
  // If not null, this gives the offset for each k instead of k_stride.
  const WeightTaps* weights = nullptr;

  bool plain() const { return window == nullptr && weights == nullptr; }
  bool rows_lie_flat() const { return plain() && k_stride == 1; }
  bool columns_lie_flat() const { return plain() && i_stride == 1; }
};

// The layout of C's columns if they are pixels of a grid with gaps.
struct Grid {
  int64_t size[kMaxSpatial];
  int64_t strides[kMaxSpatial];

  int64_t offset(int64_t pixel) const {
    const int64_t line = pixel / size[2];
    return pixel % size[2] * strides[2] + line % size[1] * strides[1] + line / size[1] * strides[0];
  }
};

// C[i][j] = alpha * sum over k of a(i, k) b(j, k)  +  beta * add[i][j].
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Factor a;
  Factor b;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t c_col = 1;
  const Grid* grid = nullptr;  // if not null, gives the columns' offsets instead of c_col
  const float* add = nullptr;  // nullptr adds nothing
  int64_t add_row = 0;
  int64_t add_col = 0;
  float alpha = 1;
  float beta = 1;
};

// Equal pieces of memory that bodies of KernelContext::parallel() take and return, so that the
// number of bodies at work never exceeds the number of pieces.
class Shares {
 public:
  static constexpr int kMaxShares = 8;
  explicit Shares(int count) : count_(count) {}
  // Returns the number of a free piece, and waits for one if necessary.
  int take();
  void give(int share) { taken_.fetch_and(~(1u << share), std::memory_order_release); }

 private:
  std::atomic<uint32_t> taken_{0};
  int count_;
};

// The number of multiplications that is worth a run of KernelContext::parallel().
constexpr int64_t kProductGrain = int64_t{1} << 19;

// Memory for panels: as much of the call's scratch memory as is useful, or a little on the stack.
class Workspace {
 public:
  explicit Workspace(KernelContext& ctx);
  Workspace(KernelContext& ctx, float* data, int64_t size) : ctx_(ctx), data_(data), size_(size) {}
  // Piece number `share` of another workspace that is divided into `count` pieces.
  Workspace(const Workspace& whole, int share, int count)
      : ctx_(whole.ctx_),
        data_(whole.data_ + share * (whole.size_ / count / 16 * 16)),
        size_(whole.size_ / count / 16 * 16) {}
  KernelContext& context() const { return ctx_; }
  // The number of pieces for products that run at the same time.
  int shares() const { return size_ >= kShared ? 4 : 1; }
  float* data() const { return data_; }
  int64_t size() const { return size_; }  // in floats

 private:
  // Enough for the minimum of the blocked algorithm: one panel of each factor, each 16 long.
  static constexpr int64_t kStackFloats = 16 * (kMaxTileHeight + kMaxPanelWidth) + 64;
  static constexpr int64_t kShared = int64_t{1} << 16;
  KernelContext& ctx_;
  float* data_;
  int64_t size_;
  alignas(64) float stack_[kStackFloats];
};

void multiply(const Workspace& work, Product product);

}  // namespace rushlight::kernels
