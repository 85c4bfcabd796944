#include "rushlight/backends/cpu/kernels/product.h"

#include "rushlight/backends/cpu/kernels/blocks.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kPackSlack = 16;  // floats behind each packed block

struct Plan {
  const Product* product;
  RowRuns runs;
  const GemmLoops* loops;
  EvenBlocks blocks;
  float* packed;  // nullptr: A is read as it lies
};

const float* row_at(const Plan& plan, int64_t row) {
  const Product& p = *plan.product;
  if (plan.runs.run == 0) return p.a + row * p.a_step;
  return p.a + row / plan.runs.run * plan.runs.run_step + row % plan.runs.run * p.a_step;
}

float* packed_block(const Plan& plan, int64_t block) {
  return plan.packed + plan.blocks.start(block) * plan.product->depth + block * kPackSlack;
}

void pack_blocks(void* data, int64_t begin, int64_t end) {
  const Plan& plan = *static_cast<const Plan*>(data);
  for (int64_t block = begin; block < end; ++block) {
    const float* rows[kMaxTileRows];
    const int64_t height = plan.blocks.height(block);
    for (int64_t i = 0; i < height; ++i) rows[i] = row_at(plan, plan.blocks.start(block) + i);
    plan.loops->pack_rows(rows, height, plan.product->depth, packed_block(plan, block));
  }
}

int64_t place_block(const void* data, int64_t block, GemmTile* tile) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const int64_t row = plan.blocks.start(block);
  tile->rows = plan.blocks.height(block);
  if (plan.packed != nullptr) {
    tile->a[0] = packed_block(plan, block);
    tile->a_step = 1;
    tile->k_step = tile->rows;
  } else {
    tile->a[0] = row_at(plan, row);
  }
  tile->a[1] = tile->a[0] + kFirstRows * tile->a_step;
  return row + tile->rows;
}

void narrow_panels(void* data, int64_t begin, int64_t end) {
  const Product& p = *static_cast<const Product*>(data);
  GemmTile tile;
  TileFinish finish;
  tile.depth = p.depth;
  tile.a[0] = p.a;
  tile.a_step = p.a_step;
  tile.c_step = p.c_step;
  const GemmTileFn narrow = gemm_loops().of(p.type).narrow[p.rows - 1];
  const int64_t bytes = p.depth * kPanel * panel_bytes(p.type);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    tile.columns = left < kPanel ? left : kPanel;
    tile.b = static_cast<const char*>(p.panels) + panel * bytes;
    tile.c = p.c + panel * kPanel;
    finish.set(p.finish, panel * kPanel, tile.columns, 1, &tile);
    narrow(tile);
  }
  const int64_t columns = (end * kPanel < p.columns ? end * kPanel : p.columns) - begin * kPanel;
  if (p.finish.block != nullptr) {
    p.finish.block(p.finish.data, 0, p.rows, begin * kPanel, columns);
  }
}

bool pays_to_pack(const Product& p, const RowRuns& runs) {
  if (runs.run != 0) return true;  // tiles cannot cross from run to run
  if (p.rows <= kNarrowRows) return false;
  // Rows that all meet in one set of the first-level cache drive each other out; others are read
  // as they lie at full speed.
  return p.a_step % 1024 == 0;
}

size_t packed_bytes(const Product& p) {
  const int64_t blocks = p.rows / kLeastTileRows + 1;  // for any instruction set
  const int64_t floats = p.rows * p.depth + (blocks + 1) * kPackSlack;
  return static_cast<size_t>(floats) * sizeof(float) + kCacheLine;
}

struct Packing {
  const float* matrix;
  int64_t row_step, column_step, depth, columns;
  float* panels;
};

void pack_panel_range(void* data, int64_t begin, int64_t end) {
  const Packing& p = *static_cast<const Packing*>(data);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    gemm_loops().pack_panel(p.matrix + panel * kPanel * p.column_step, p.row_step, p.column_step,
                            p.depth, left < kPanel ? left : kPanel,
                            p.panels + panel * kPanel * p.depth);
  }
}

}  // namespace

size_t runs_scratch(const Product& product, const RowRuns& runs) {
  return pays_to_pack(product, runs) ? packed_bytes(product) : 0;
}

size_t product_scratch(const Product& product) { return runs_scratch(product, RowRuns()); }

void multiply_runs(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
                   Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  const GemmLoops& loops = gemm_loops();
  GemmGrid grid(product.depth, product.type);
  grid.tile.depth = product.depth;
  grid.rows = product.rows;
  grid.columns = product.columns;
  if (product.rows <= kNarrowRows && runs.run == 0) {
    return share_out(panels_of(product.columns), grid.work(), narrow_panels,
                     const_cast<Product*>(&product), workers);
  }
  Plan plan = {&product, runs, &loops, EvenBlocks(product.rows, loops.rows), nullptr};
  if (pays_to_pack(product, runs) && scratch_size >= packed_bytes(product)) {
    plan.packed = align<float>(scratch);
    share_out(plan.blocks.blocks, grid.work() / 64, pack_blocks, &plan, workers);
  }
  grid.row_blocks = plan.blocks.blocks;
  grid.set_group(loops.rows * product.depth * 4, workers);
  grid.tile.a_step = product.a_step;
  grid.panels = product.panels;
  grid.c = product.c;
  grid.c_step = product.c_step;
  grid.finish = product.finish;
  grid.place = place_block;
  grid.data = &plan;
  run_blocks(grid, workers);
}

void multiply(const Product& product, void* scratch, size_t scratch_size, Workers* workers) {
  multiply_runs(product, RowRuns(), scratch, scratch_size, workers);
}

void pack_panels(const float* matrix, int64_t row_step, int64_t column_step, int64_t depth,
                 int64_t columns, float* panels, Workers* workers) {
  Packing packing = {matrix, row_step, column_step, depth, columns, panels};
  share_out(panels_of(columns), work_of({depth, columns}), pack_panel_range, &packing, workers);
}

}  // namespace rushlight::cpu
