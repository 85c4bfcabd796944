// The left operand of a product in blocks of rows, as tiles read them: in place, or packed block by
// block where that pays.
#pragma once

#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {

class RowBlocks {
 public:
  // Packed if there is enough scratch and it pays.
  RowBlocks(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
            Workers* workers);

  const EvenBlocks& blocks() const { return blocks_; }
  // Sets the addresses of a block, from term `term` on, in `tile`. Returns the first row after it.
  int64_t place(int64_t block, int64_t term, GemmTile* tile) const;

 private:
  static void pack(void* self, int64_t begin, int64_t end);
  const float* row_at(int64_t row) const;
  float* packed_block(int64_t block) const;

  const Product& product_;
  const RowRuns runs_;
  const EvenBlocks blocks_;
  float* packed_ = nullptr;  // nullptr: A is read in place
};

// Bytes of scratch for packed blocks; 0 where it does not pay to pack.
size_t row_blocks_scratch(const Product& product, const RowRuns& runs);

}  // namespace rushlight::engine
