#include "rushlight/backends/cpu/kernels/dot_blocks.h"

#include "rushlight/backends/cpu/loops/quantize.h"

namespace rushlight::cpu {
namespace {

void run_column(const BlockGrid& base, int64_t first, int64_t last, int64_t panel,
                int64_t n_panels) {
  const auto& grid = static_cast<const DotGrid&>(base);
  const DotLoops& loops = dot_loops();
  const Ahead ahead(grid, first, panel, n_panels);
  const int64_t columns = grid.columns_of(panel, n_panels);
  const DotResults results(grid.results, panel * kPanel, columns, n_panels);
  alignas(64) int32_t sums[kMaxTileRows * kMaxPanels * kPanel];
  DotTile tile = grid.tile;
  tile.b = grid.panel_at(panel);
  tile.b_panel = grid.panel_size();
  tile.ahead_step = ahead.step;
  int64_t row = grid.place(grid.data, first, &tile) - tile.rows;
  BlockFinish finished(grid.results.finish, row, panel, columns);
  for (int64_t block = first; block < last; ++block) {
    const int64_t next = grid.place(grid.data, block, &tile);
    tile.ahead = ahead.start + (block - first) * ahead.block;
    loops.tile[tile.rows - 1][n_panels - 1](tile, sums);
    results.write(sums, row, tile.rows);
    row = next;
    finished.advance(row, tile.rows, block + 1 == last);
  }
}

// `from`, or the `n` elements from there on copied and filled up with zeros to `room`.
template <typename T>
const T* whole_panels(const T* from, int64_t n, int64_t room, T* own) {
  if (from == nullptr || n == room) return from;
  for (int64_t j = 0; j < room; ++j) own[j] = j < n ? from[j] : T();
  return own;
}

}  // namespace

DotGrid::DotGrid(int64_t taps, int64_t depth) {
  column = run_column;
  width = dot_loops().panels;
  terms = taps * depth;
  steps = taps * quads_of(depth);
  step_bytes = kQuadBytes;
  tile.depth = depth;
}

DotResults::DotResults(const QuantizedResults& results, int64_t column, int64_t columns,
                       int64_t panels)
    : results_(results), column_(column), columns_(columns), sums_step_(panels * kPanel) {
  const float* bias = results.finish.bias;
  start_ = whole_panels(results.start + column, columns, sums_step_, own_start_);
  multipliers_ = whole_panels(results.multipliers + column, columns, sums_step_, own_multipliers_);
  bias_ = whole_panels(bias == nullptr ? nullptr : bias + column, columns, sums_step_, own_bias_);
}

void DotResults::write(const int32_t* sums, int64_t row, int64_t rows) const {
  SumTile tile;
  tile.sums = sums;
  tile.sums_step = sums_step_;
  tile.rows = rows;
  tile.columns = columns_;
  tile.start = start_;
  tile.multipliers = multipliers_;
  const int64_t first = row * results_.step + column_;
  if (results_.bytes != nullptr) {
    return quantize_loops().requantize(
        {tile, results_.requantize, results_.bytes + first, results_.step});
  }
  const Finish& finish = results_.finish;
  DequantizeTile numbers = {tile};
  if (results_.row_scales != nullptr) numbers.row_scales = results_.row_scales + 2 * row;
  numbers.bias = bias_;
  if (finish.residual != nullptr) {
    numbers.residual = finish.residual + row * finish.residual_step + column_;
    numbers.residual_step = finish.residual_step;
  }
  numbers.clamp = finish.clamps();
  numbers.low = finish.low;
  numbers.high = finish.high;
  numbers.out = results_.floats + first;
  numbers.out_step = results_.step;
  quantize_loops().dequantize(numbers);
}

}  // namespace rushlight::cpu
