#include "rushlight/backends/cpu/kernels/product.h"

#include "rushlight/backends/cpu/kernels/blocks.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kPackColumns = 128;        // from so many on, packing A is soon paid back
constexpr int64_t kGroupBytes = 512 * 1024;  // of A, beside panels in the second-level cache
constexpr int64_t kFinishRows = 56;          // whose results are surely in the first-level cache
constexpr int64_t kPackSlack = 16;           // floats behind each packed block

struct Plan {
  const Product* product;
  RowRuns runs;
  const GemmLoops* loops;
  EvenBlocks blocks;
  float* packed;  // nullptr: A is read as it lies
  int64_t group;
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

void finish_rows(const Product& p, int64_t row, int64_t rows, int64_t panel, int64_t columns) {
  if (p.finish.block == nullptr || rows == 0) return;
  p.finish.block(p.finish.data, row, rows, panel * kPanel, columns);
}

// Sets the next panels to be fetched while the blocks of a group work on these.
void set_ahead(const Plan& plan, int64_t panel, int64_t n_panels, GemmTile* tile) {
  const Product& p = *plan.product;
  const int64_t height = plan.group < plan.blocks.blocks ? plan.group : plan.blocks.blocks;
  const int64_t next = panel + n_panels < panels_of(p.columns) ? panel + n_panels : 0;
  const int64_t bytes = n_panels * kPanel * 4;
  tile->ahead = reinterpret_cast<const char*>(p.panels + next * p.depth * kPanel);
  tile->ahead_step = (bytes + height - 1) / height;
}

void product_column(const void* data, int64_t first, int64_t last, int64_t panel,
                    int64_t n_panels) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const Product& p = *plan.product;
  GemmTile tile;
  tile.depth = p.depth;
  tile.b = p.panels + panel * p.depth * kPanel;
  tile.b_panel = p.depth * kPanel;
  tile.c_step = p.c_step;
  tile.columns = n_panels * kPanel;
  if (tile.columns > p.columns - panel * kPanel) tile.columns = p.columns - panel * kPanel;
  set_finish(p.finish, panel, &tile);
  set_ahead(plan, panel, n_panels, &tile);
  const char* ahead = tile.ahead;
  int64_t unfinished = 0;
  for (int64_t block = first; block < last; ++block) {
    const int64_t row = plan.blocks.start(block);
    const int64_t height = plan.blocks.height(block);
    if (plan.packed != nullptr) {
      tile.a[0] = packed_block(plan, block);
      tile.a_step = 1;
      tile.k_step = height;
    } else {
      tile.a[0] = row_at(plan, row);
      tile.a_step = p.a_step;
    }
    tile.a[1] = tile.a[0] + kFirstRows * tile.a_step;
    tile.c[0] = p.c + row * p.c_step + panel * kPanel;
    tile.c[1] = tile.c[0] + kFirstRows * p.c_step;
    tile.ahead = ahead + block % plan.group * p.depth * tile.ahead_step;
    plan.loops->tile[height - 1][n_panels - 1](tile);
    unfinished += height;
    if (unfinished + height > kFinishRows || block + 1 == last) {
      finish_rows(p, row + height - unfinished, unfinished, panel, tile.columns);
      unfinished = 0;
    }
  }
}

void narrow_panels(void* data, int64_t begin, int64_t end) {
  const Product& p = *static_cast<const Product*>(data);
  GemmTile tile;
  tile.depth = p.depth;
  tile.a[0] = p.a;
  tile.a_step = p.a_step;
  tile.c_step = p.c_step;
  const GemmTileFn narrow = gemm_loops().narrow[p.rows - 1];
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    tile.columns = left < kPanel ? left : kPanel;
    tile.b = p.panels + panel * p.depth * kPanel;
    tile.c[0] = p.c + panel * kPanel;
    set_finish(p.finish, panel, &tile);
    narrow(tile);
  }
  const int64_t columns = end * kPanel < p.columns ? end * kPanel : p.columns;
  finish_rows(p, 0, p.rows, begin, columns - begin * kPanel);
}

bool pays_to_pack(const Product& p, const RowRuns& runs) {
  if (p.rows <= kNarrowRows) return false;
  return runs.run != 0 || p.columns >= kPackColumns || p.a_step % 1024 == 0;
}

size_t packed_bytes(const Product& p) {
  const int64_t blocks = EvenBlocks(p.rows, gemm_loops().rows).blocks;
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

size_t product_scratch(const Product& product) {
  return pays_to_pack(product, RowRuns()) ? packed_bytes(product) : 0;
}

void multiply_runs(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
                   Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  const GemmLoops& loops = gemm_loops();
  const int64_t panels = panels_of(product.columns);
  const int64_t work = product.rows * product.depth * product.columns;
  if (product.rows <= kNarrowRows && runs.run == 0) {
    return share_out(panels, work, narrow_panels, const_cast<Product*>(&product), workers);
  }
  const bool packs = pays_to_pack(product, runs) && scratch_size >= packed_bytes(product);
  Plan plan = {&product, runs, &loops, EvenBlocks(product.rows, loops.rows), nullptr, 1};
  if (packs) plan.packed = align_floats(scratch);
  const int64_t block_bytes = loops.rows * product.depth * 4;
  plan.group = block_bytes == 0 || kGroupBytes < block_bytes ? 1 : kGroupBytes / block_bytes;
  if (packs) share_out(plan.blocks.blocks, work / 64, pack_blocks, &plan, workers);
  BlockGrid grid;
  grid.row_blocks = plan.blocks.blocks;
  grid.group = plan.group;
  grid.panels = panels;
  grid.work = work;
  grid.column = product_column;
  grid.data = &plan;
  run_blocks(grid, workers);
}

void multiply(const Product& product, void* scratch, size_t scratch_size, Workers* workers) {
  multiply_runs(product, RowRuns(), scratch, scratch_size, workers);
}

void pack_panels(const float* matrix, int64_t row_step, int64_t column_step, int64_t depth,
                 int64_t columns, float* panels, Workers* workers) {
  Packing packing = {matrix, row_step, column_step, depth, columns, panels};
  share_out(panels_of(columns), depth * columns, pack_panel_range, &packing, workers);
}

}  // namespace rushlight::cpu
