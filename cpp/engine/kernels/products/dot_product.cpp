#include "rushlight/engine/kernels/products/dot_product.h"

#include "rushlight/engine/kernels/products/dot_blocks.h"

namespace rushlight::engine {
namespace {

struct Plan {
  const QuantizedProduct* product;
  EvenBlocks blocks;
};

int64_t place_block(const void* data, int64_t block, DotTile* tile) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const int64_t row = plan.blocks.start(block);
  tile->rows = plan.blocks.height(block);
  tile->a[0] = plan.product->a + row * plan.product->a_stride;
  tile->a[1] = tile->a[0] + kFirstRows * plan.product->a_stride;
  const RowGroups& groups = plan.product->row_groups;
  if (groups.groups != 0) {
    tile->row_groups.scales = groups.scales + row * groups.groups;
    tile->row_groups.sums = groups.sums + row * groups.groups;
  }
  return row + tile->rows;
}

void narrow_panels(void* data, int64_t begin, int64_t end) {
  const DotGrid& grid = *static_cast<const DotGrid*>(data);
  alignas(64) int32_t sums[kNarrowRows * kPanel];
  const DotTileFn narrow = grid.tiles->narrow[grid.rows - 1];
  for (int64_t panel = begin; panel < end; ++panel) {
    narrow(grid.tile_at(panel), sums);
    DotResults(grid.results, panel * kPanel, grid.columns_of(panel, 1), 1)
        .write(sums, 0, grid.rows);
  }
  const Epilogue& epilogue = grid.results.epilogue;
  if (epilogue.block != nullptr) {
    epilogue.block(epilogue.data, 0, grid.rows, begin * kPanel,
                   grid.columns_of(begin, end - begin));
  }
}

DotGrid grid_of(const QuantizedProduct& product) {
  if (product.row_groups.groups != 0) return DotGrid(product);
  return product.bits == 8 ? DotGrid(1, product.depth) : DotGrid(product.depth, product.groups);
}

}  // namespace

void multiply(const QuantizedProduct& product, Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  DotGrid grid = grid_of(product);
  grid.rows = product.rows;
  grid.columns = product.columns;
  grid.tile.rows = product.rows;
  grid.tile.a[0] = product.a;
  grid.tile.a_stride = product.a_stride;
  grid.panels = product.panels;
  grid.results = product.results;
  if (product.bits == 4) grid.results.parts = 16;
  if (product.rows <= kNarrowRows) {
    return share_out(panels_of(product.columns), grid.work(), narrow_panels, &grid, workers);
  }
  const int64_t highest = grid.tiles->rows;
  const Plan plan = {&product, EvenBlocks(product.rows, highest)};
  grid.row_blocks = plan.blocks.blocks;
  grid.set_group(highest * product.depth, workers);
  grid.place = place_block;
  grid.data = &plan;
  run_blocks(grid, workers);
}

}  // namespace rushlight::engine
