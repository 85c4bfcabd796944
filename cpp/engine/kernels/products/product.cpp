#include "rushlight/engine/kernels/products/product.h"

#include "rushlight/engine/kernels/products/row_blocks.h"
#include "rushlight/engine/kernels/products/unpacked.h"

namespace rushlight::engine {
namespace {

int64_t place_block(const void* data, int64_t block, GemmTile* tile) {
  return static_cast<const RowBlocks*>(data)->place(block, 0, tile);
}

void narrow_range(void* data, int64_t begin, int64_t end) {
  multiply_narrow(*static_cast<const Product*>(data), begin, end, true);
}

struct Packing {
  const float* matrix;
  int64_t row_stride, column_stride, depth, columns;
  float* panels;
};

void pack_panel_range(void* data, int64_t begin, int64_t end) {
  const Packing& p = *static_cast<const Packing*>(data);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    gemm_loops().pack_panel(p.matrix + panel * kPanel * p.column_stride, p.row_stride,
                            p.column_stride, p.depth, left < kPanel ? left : kPanel,
                            p.panels + panel * kPanel * p.depth);
  }
}

}  // namespace

void multiply_narrow(const Product& p, int64_t begin, int64_t end, bool fetches) {
  const GemmLoops& loops = gemm_loops();
  GemmTile tile;
  TileEpilogue epilogue;
  tile.depth = p.depth;
  tile.a[0] = p.a;
  tile.a_stride = p.a_stride;
  tile.c_stride = p.c_stride;
  const GemmTileFn* narrow = loops.narrow;
  if (p.type == PanelType::Float16) narrow = loops.narrow_float16;
  if (p.type == PanelType::BFloat16) narrow = loops.narrow_bfloat16;
  const int64_t bytes = p.depth * kPanel * (p.type == PanelType::Float32 ? 4 : 2);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    tile.columns = left < kPanel ? left : kPanel;
    const char* b = static_cast<const char*>(p.panels) + panel * bytes;
    tile.b = b;
    tile.ahead = fetches ? b : nullptr;
    tile.c = p.c + panel * kPanel;
    epilogue.set(p.epilogue, panel * kPanel, tile.columns, 1, &tile);
    narrow[p.rows - 1](tile);
  }
  const int64_t columns = (end * kPanel < p.columns ? end * kPanel : p.columns) - begin * kPanel;
  if (p.epilogue.block != nullptr) {
    p.epilogue.block(p.epilogue.data, 0, p.rows, begin * kPanel, columns);
  }
}

size_t least_product_scratch(const Product& product, size_t threads) {
  return is_unpacked(product) ? unpacked_scratch(product, threads) : 0;
}

size_t product_scratch(const Product& product, size_t threads) {
  return least_product_scratch(product, threads) + row_blocks_scratch(product, RowRuns());
}

void multiply_runs(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
                   Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  GemmGrid grid(product.depth);
  grid.tile.depth = product.depth;
  grid.rows = product.rows;
  grid.columns = product.columns;
  if (product.rows <= kNarrowRows && runs.run == 0) {
    return share_out(panels_of(product.columns), grid.work(), narrow_range,
                     const_cast<Product*>(&product), workers);
  }
  const RowBlocks rows(product, runs, scratch, scratch_size, workers);
  grid.row_blocks = rows.blocks().blocks;
  grid.set_group(gemm_loops().rows * product.depth * 4, workers);
  grid.panels = product.panels;
  grid.c = product.c;
  grid.c_stride = product.c_stride;
  grid.epilogue = product.epilogue;
  grid.place = place_block;
  grid.data = &rows;
  run_blocks(grid, workers);
}

void multiply(const Product& product, void* scratch, size_t scratch_size, Workers* workers) {
  if (is_unpacked(product)) {
    return multiply_unpacked(product, scratch, scratch_size, workers);
  }
  multiply_runs(product, RowRuns(), scratch, scratch_size, workers);
}

void pack_panels(const float* matrix, int64_t row_stride, int64_t column_stride, int64_t depth,
                 int64_t columns, float* panels, Workers* workers) {
  Packing packing = {matrix, row_stride, column_stride, depth, columns, panels};
  share_out(panels_of(columns), work_of({depth, columns}), pack_panel_range, &packing, workers);
}

}  // namespace rushlight::engine
