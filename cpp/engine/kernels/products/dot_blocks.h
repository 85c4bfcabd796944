// What products and convolutions of bytes share: tiles over blocks of a result, and the
// requantization or dequantization of their sums.
#pragma once

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/products/quantize.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// A grid whose tiles are placed by place(): see BlockGrid. The caller also sets the fields that
// tiles share, row_blocks, group, rows, columns, panels and results.
struct DotGrid : BlockGrid {
  const DotTiles* tiles;
  DotTile tile;
  QuantizedResults results;
  // Sets the addresses of a block of rows of A in `tile`. Returns the first row after it.
  int64_t (*place)(const void* data, int64_t block, DotTile* tile) = nullptr;
  const void* data = nullptr;

  // Sums of `taps` taps with `depth` terms each.
  DotGrid(int64_t taps, int64_t depth);
  // Sums of one tap, with weights of 4 bits.
  DotGrid(int64_t depth, const GroupScales& groups);
  // Sums of rows in groups.
  explicit DotGrid(const QuantizedProduct& product);
  // Call it after `results` is set.
  void set_group(int64_t block_bytes, const Workers* workers) {
    const auto out_size = results.bytes != nullptr ? sizeof(uint8_t) : sizeof(float);
    BlockGrid::set_group(block_bytes, 1, static_cast<int64_t>(out_size), workers);
  }
  // The tile of a panel and those after it.
  DotTile tile_at(int64_t panel) const;
};

// Stores the sums of a part of a result: `columns` columns, in `panels` panels, from `column` on.
class DotResults {
 public:
  DotResults(const QuantizedResults& results, int64_t column, int64_t columns, int64_t panels);
  DotResults(const DotResults&) = delete;
  DotResults& operator=(const DotResults&) = delete;
  // Sums of rows row..row+rows-1: int32, or float where there are shares.
  void write(const void* sums, int64_t row, int64_t rows) const {
    if (bytes_.out != nullptr) {
      loops_.requantize(bytes_, static_cast<const int32_t*>(sums), row, rows);
    } else {
      loops_.dequantize(numbers_, sums, row, rows);
    }
  }
  // Fetches what rows row..row+rows-1 are stored to and added to while their sums are computed.
  // Always inlined: GCC drops calls of functions that do nothing but fetch.
  RL_INLINE void fetch(int64_t row, int64_t rows) const {
    if (numbers_.out == nullptr) return;
    for (int64_t i = row; i < row + rows; ++i) {
      for (int64_t j = 0; j < numbers_.columns; j += kPanel) {
        __builtin_prefetch(numbers_.out + i * numbers_.out_stride + j, 1);
        if (numbers_.residual == nullptr) continue;
        __builtin_prefetch(numbers_.residual + i * numbers_.residual_stride + j);
      }
    }
  }
  // nullptr if results are floats.
  const RequantizeColumns* bytes() const { return bytes_.out != nullptr ? &bytes_ : nullptr; }
  // nullptr if results are bytes or clamped, or sums are integers.
  const DequantizeColumns* floats() const {
    const bool plain = numbers_.out != nullptr && !numbers_.clamp;
    return plain && (numbers_.scaled || numbers_.shares != nullptr) ? &numbers_ : nullptr;
  }

 private:
  const QuantizeLoops& loops_;
  RequantizeColumns bytes_;
  DequantizeColumns numbers_;
  // Used if a group of channels ends within a panel, after which the next group's constants follow.
  int32_t own_start_[kMaxPanels * kPanel];
  float own_multipliers_[kMaxPanels * kPanel];
  float own_shares_[kMaxPanels * kPanel];
  float own_bias_[kMaxPanels * kPanel];
};

}  // namespace rushlight::engine
