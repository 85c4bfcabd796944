// What products and convolutions of bytes share: tiles over blocks of a result, and what becomes of
// their sums.
#pragma once

#include "rushlight/backends/cpu/kernels/blocks.h"
#include "rushlight/backends/cpu/kernels/dot_product.h"
#include "rushlight/backends/cpu/loops/dot.h"

namespace rushlight::cpu {

// A result whose tiles lie where place() says: see BlockGrid. To be set besides: what tiles have in
// common, row_blocks, group, rows, columns, panels and results.
struct DotGrid : BlockGrid {
  DotTile tile;
  QuantizedResults results;
  // Puts into `tile` where a block of rows lies in A. Returns the first row after it.
  int64_t (*place)(const void* data, int64_t block, DotTile* tile) = nullptr;
  const void* data = nullptr;

  // `depth` terms in each of `taps`.
  DotGrid(int64_t taps, int64_t depth);
};

// The same for a part of a result, `columns` of which `panels` begin at `column`: what a tile's
// sums become.
class DotResults {
 public:
  DotResults(const QuantizedResults& results, int64_t column, int64_t columns, int64_t panels);
  // Sums of rows row..row+rows-1.
  void write(const int32_t* sums, int64_t row, int64_t rows) const;

 private:
  const QuantizedResults& results_;
  int64_t column_, columns_, sums_step_;
  const int32_t* start_;
  const float* multipliers_;
  const float* bias_;
  // Of a group of channels that ends within a panel, what follows belongs to the next.
  int32_t own_start_[kMaxPanels * kPanel];
  float own_multipliers_[kMaxPanels * kPanel];
  float own_bias_[kMaxPanels * kPanel];
};

}  // namespace rushlight::cpu
