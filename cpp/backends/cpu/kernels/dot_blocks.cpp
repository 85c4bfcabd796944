#include "rushlight/backends/cpu/kernels/dot_blocks.h"

#include "rushlight/backends/cpu/loops/quantize.h"

namespace rushlight::cpu {
namespace {

// [rows - 1][panels - 1] or narrow [rows - 1], of integers or of numbers.
const NibbleTiles& nibble_tiles(const NibbleTile& tile) {
  return tile.groups == 0 ? nibble_loops().integers : nibble_loops().numbers;
}

void run_tile(int32_t bits, const NibbleTile& tile, int64_t panels, int32_t* sums) {
  if (bits == 8) return dot_loops().tile[tile.rows - 1][panels - 1](tile, sums);
  nibble_tiles(tile).tile[tile.rows - 1][panels - 1](tile, sums);
}

void run_column(const BlockGrid& base, int64_t first, int64_t last, int64_t panel,
                int64_t n_panels) {
  const auto& grid = static_cast<const DotGrid&>(base);
  const Ahead ahead(grid, first, panel, n_panels);
  const int64_t columns = grid.columns_of(panel, n_panels);
  const DotResults results(grid.results, grid.bits, panel * kPanel, columns, n_panels);
  alignas(64) int32_t sums[kMaxTileRows * kMaxPanels * kPanel];
  NibbleTile tile = grid.tile;
  tile.b = grid.panel_at(panel);
  tile.b_panel = grid.panel_size();
  tile.ahead_step = ahead.step;
  tile.scales = static_cast<const char*>(tile.scales) + panel * tile.scale_panel;
  int64_t row = grid.place(grid.data, first, &tile) - tile.rows;
  BlockFinish finished(grid.results.finish, row, panel, columns);
  for (int64_t block = first; block < last; ++block) {
    const int64_t next = grid.place(grid.data, block, &tile);
    tile.ahead = ahead.start + (block - first) * ahead.block;
    run_tile(grid.bits, tile, n_panels, sums);
    results.write(sums, row, tile.rows);
    row = next;
    finished.advance(row, tile.rows, block + 1 == last);
  }
}

NibbleTile nibble_tile(int64_t depth, const GroupScales& groups) {
  NibbleTile tile;
  tile.depth = depth;
  tile.groups = groups.groups;
  tile.scales = groups.scales;
  tile.halves = groups.halves;
  tile.scale_panel = groups.groups * kPanel * (groups.halves ? 2 : 4);
  return tile;
}

// `from`, or the `n` elements from there on copied and filled up with zeros to `room`.
template <typename T>
const T* whole_panels(const T* from, int64_t n, int64_t room, T* own) {
  if (from == nullptr || n == room) return from;
  for (int64_t j = 0; j < room; ++j) own[j] = j < n ? from[j] : T();
  return own;
}

}  // namespace

void run_narrow(int32_t bits, const NibbleTile& tile, int32_t* sums) {
  if (bits == 8) return dot_loops().narrow[tile.rows - 1](tile, sums);
  nibble_tiles(tile).narrow[tile.rows - 1](tile, sums);
}

DotGrid::DotGrid(int64_t taps, int64_t depth) {
  column = run_column;
  width = dot_loops().panels;
  terms = taps * depth;
  steps = taps * quads_of(depth);
  step_bytes = kQuadBytes;
  tile.depth = depth;
}

DotGrid::DotGrid(int64_t depth, const GroupScales& groups) {
  column = run_column;
  width = nibble_loops().panels;
  terms = depth;
  steps = panel_quads(depth, 4);
  step_bytes = kQuadBytes;
  bits = 4;
  tile = nibble_tile(depth, groups);
}

DotResults::DotResults(const QuantizedResults& results, int32_t bits, int64_t column,
                       int64_t columns, int64_t panels)
    : results_(results),
      parts_(bits == 8 ? 1 : 16),
      column_(column),
      columns_(columns),
      sums_step_(panels * kPanel) {
  const auto part = [&](const auto* from, auto* own) {
    return whole_panels(from == nullptr ? nullptr : from + column, columns, sums_step_, own);
  };
  start_ = part(results.start, own_start_);
  multipliers_ = part(results.multipliers, own_multipliers_);
  shares_ = part(results.shares, own_shares_);
  bias_ = part(results.finish.bias, own_bias_);
}

void DotResults::write(const void* sums, int64_t row, int64_t rows) const {
  SumTile tile;
  tile.sums = static_cast<const int32_t*>(sums);
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
  numbers.parts = parts_;
  numbers.shares = shares_;
  if (shares_ != nullptr) numbers.numbers = static_cast<const float*>(sums);
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
