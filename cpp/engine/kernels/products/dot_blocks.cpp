#include "rushlight/engine/kernels/products/dot_blocks.h"

#include "rushlight/kernel/selection.h"

namespace rushlight::engine {
namespace {

void run_column(const BlockGrid& base, int64_t first, int64_t last, int64_t panel,
                int64_t n_panels) {
  const auto& grid = static_cast<const DotGrid&>(base);
  const DotTiles& tiles = *grid.tiles;
  const Ahead ahead(grid, first, panel, n_panels);
  const int64_t columns = grid.columns_of(panel, n_panels);
  const DotResults results(grid.results, panel * kPanel, columns, n_panels);
  alignas(64) int32_t sums[kMaxTileRows * kMaxPanels * kPanel];
  const bool whole = columns == tiles.panels * kPanel;
  const RequantizeColumns* bytes = whole ? results.bytes() : nullptr;
  const DequantizeColumns* floats = whole ? results.floats() : nullptr;
  DotTile tile = grid.tile_at(panel);
  tile.ahead_stride = ahead.stride();
  int64_t row = grid.place(grid.data, first, &tile) - tile.rows;
  BlockEpilogue block_epilogue(grid.results.epilogue, row, panel, columns);
  for (int64_t block = first; block < last; ++block) {
    const int64_t next = grid.place(grid.data, block, &tile);
    tile.ahead = ahead.at(block - first);
    results.fetch(row, tile.rows);
    if (bytes != nullptr && tiles.bytes[tile.rows - 1] != nullptr) {
      tiles.bytes[tile.rows - 1](tile, *bytes, row);
    } else if (floats != nullptr && tiles.floats[tile.rows - 1] != nullptr) {
      tiles.floats[tile.rows - 1](tile, *floats, row);
    } else {
      tiles.tile[tile.rows - 1][n_panels - 1](tile, sums);
      results.write(sums, row, tile.rows);
    }
    row = next;
    block_epilogue.advance(row, tile.rows, block + 1 == last);
  }
}

// `from` itself, or a copy of `n` elements, filled up with zeros to `room`.
template <typename T>
const T* whole_panels(const T* from, int64_t n, int64_t room, T* own) {
  if (from == nullptr || n == room) return from;
  for (int64_t j = 0; j < room; ++j) own[j] = j < n ? from[j] : T();
  return own;
}

// Of a build without loops for weights of 4 bits, which has no such products, those for 8 bits.
const DotTiles* nibble_tiles([[maybe_unused]] const GroupScales& groups) {
  if constexpr (selection::kWeights.nibbles) {
    return groups.groups == 0 ? &nibble_loops().integers : &nibble_loops().numbers;
  } else {
    return &dot_loops();
  }
}

}  // namespace

DotGrid::DotGrid(int64_t taps, int64_t depth) : tiles(&dot_loops()) {
  column = run_column;
  width = tiles->panels;
  terms = taps * depth;
  iterations = taps * quads_of(depth);
  iteration_bytes = kQuadBytes;
  tile.depth = depth;
}

DotGrid::DotGrid(int64_t depth, const GroupScales& groups) : tiles(nibble_tiles(groups)) {
  column = run_column;
  width = tiles->panels;
  terms = depth;
  iterations = panel_quads(depth, 4);
  iteration_bytes = kQuadBytes;
  tile.depth = depth;
  tile.groups = groups.groups;
  tile.scales = groups.scales;
  tile.scale_type = groups.type;
  tile.scale_panel = groups.panel_bytes();
}

DotGrid::DotGrid(const QuantizedProduct& product) : DotGrid(product.depth, product.groups) {
  if constexpr (selection::kWeights.row_groups) {
    tiles = product.bits == 8 ? &group_loops().bytes : &group_loops().nibbles;
  }
  width = tiles->panels;
  iterations = panel_quads(product.depth, product.bits);
  tile.row_groups = product.row_groups;
}

DotTile DotGrid::tile_at(int64_t panel) const {
  DotTile part = tile;
  part.b = panel_at(panel);
  part.b_panel = panel_size();
  if (part.groups != 0) {
    part.scales = static_cast<const char*>(part.scales) + panel * part.scale_panel;
  }
  return part;
}

DotResults::DotResults(const QuantizedResults& results, int64_t column, int64_t columns,
                       int64_t panels)
    : loops_(quantize_loops()) {
  const int64_t room = panels * kPanel;
  const auto part = [&](const auto* from, auto* own) {
    return whole_panels(from == nullptr ? nullptr : from + column, columns, room, own);
  };
  SumColumns common;
  common.columns = columns;
  common.sums_stride = room;
  common.start = part(results.start, own_start_);
  common.multipliers = part(results.multipliers, own_multipliers_);
  common.out_stride = results.stride;
  if (results.bytes != nullptr) {
    static_cast<SumColumns&>(bytes_) = common;
    bytes_.requantize = results.requantize;
    bytes_.out = results.bytes + column;
    if (results.residual != nullptr) bytes_.residual = results.residual + column;
    bytes_.residual_stride = results.residual_stride;
    bytes_.sum = results.sum;
    return;
  }
  const Epilogue& epilogue = results.epilogue;
  numbers_ = {common};
  numbers_.row_scales = results.row_scales;
  numbers_.scaled = results.scaled;
  numbers_.parts = results.parts;
  numbers_.shares = part(results.shares, own_shares_);
  numbers_.bias = part(epilogue.bias, own_bias_);
  if (epilogue.residual != nullptr) numbers_.residual = epilogue.residual + column;
  numbers_.residual_stride = epilogue.residual_stride;
  numbers_.clamp = epilogue.clamps();
  numbers_.low = epilogue.low;
  numbers_.high = epilogue.high;
  numbers_.out = results.floats + column;
}

}  // namespace rushlight::engine
