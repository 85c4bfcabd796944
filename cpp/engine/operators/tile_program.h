// A tile program with the values that it reads and writes.
#pragma once

#include "rushlight/engine/kernels/rows/tile.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

// A program with the addresses of one run.
struct BoundTiles {
  TileOperand operands[kTileOperands];
  TileRun run;
};

class TilePlan {
 public:
  // All operands must have the same sizes, of at most kTileRank dimensions; a stride of 0 repeats
  // elements. An operand that is stored to must have no such stride and must be writable.
  Status prepare(Setup& setup, const TileProgram& program);
  bool empty() const { return program_.empty(); }
  const int64_t* sizes() const { return sizes_; }
  void bind(const Frame& frame, BoundTiles& bound) const;

 private:
  Status read_operand(Setup& setup, size_t i, size_t number);
  Status check_stores(Setup& setup) const;
  Status refuse_sizes(const Setup& setup, size_t i, const View& view) const;

  Span<const TileInstruction> program_;
  const View* views_[kTileOperands] = {};
  size_t n_operands_ = 0;
  int64_t sizes_[kTileRank] = {1, 1, 1, 1};
};

}  // namespace rushlight::engine
