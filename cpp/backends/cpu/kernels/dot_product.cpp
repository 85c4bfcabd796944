#include "rushlight/backends/cpu/kernels/dot_product.h"

#include "rushlight/backends/cpu/kernels/dot_blocks.h"

namespace rushlight::cpu {
namespace {

struct Plan {
  const QuantizedProduct* product;
  EvenBlocks blocks;
};

int64_t place_block(const void* data, int64_t block, DotTile* tile) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const int64_t row = plan.blocks.start(block);
  tile->rows = plan.blocks.height(block);
  tile->a[0] = plan.product->a + row * plan.product->a_step;
  tile->a[1] = tile->a[0] + kFirstRows * plan.product->a_step;
  return row + tile->rows;
}

void narrow_panels(void* data, int64_t begin, int64_t end) {
  const QuantizedProduct& p = *static_cast<const QuantizedProduct*>(data);
  alignas(64) int32_t sums[kNarrowRows * kPanel];
  DotTile tile;
  tile.depth = p.depth;
  tile.a[0] = p.a;
  tile.a_step = p.a_step;
  const DotTileFn narrow = dot_loops().narrow[p.rows - 1];
  const int64_t bytes = quads_of(p.depth) * kQuadBytes;
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t left = p.columns - panel * kPanel;
    const int64_t columns = left < kPanel ? left : kPanel;
    tile.b = static_cast<const char*>(p.panels) + panel * bytes;
    narrow(tile, sums);
    DotResults(p.results, panel * kPanel, columns, 1).write(sums, 0, p.rows);
  }
  const int64_t last = end * kPanel < p.columns ? end * kPanel : p.columns;
  const Finish& finish = p.results.finish;
  if (finish.block != nullptr) {
    finish.block(finish.data, 0, p.rows, begin * kPanel, last - begin * kPanel);
  }
}

}  // namespace

void multiply(const QuantizedProduct& product, Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  const DotLoops& loops = dot_loops();
  DotGrid grid(1, product.depth);
  grid.rows = product.rows;
  grid.columns = product.columns;
  if (product.rows <= kNarrowRows) {
    return share_out(panels_of(product.columns), grid.work(), narrow_panels,
                     const_cast<QuantizedProduct*>(&product), workers);
  }
  const Plan plan = {&product, EvenBlocks(product.rows, loops.rows)};
  grid.row_blocks = plan.blocks.blocks;
  grid.set_group(loops.rows * product.depth);
  grid.tile.a_step = product.a_step;
  grid.panels = product.panels;
  grid.results = product.results;
  grid.place = place_block;
  grid.data = &plan;
  run_blocks(grid, workers);
}

}  // namespace rushlight::cpu
