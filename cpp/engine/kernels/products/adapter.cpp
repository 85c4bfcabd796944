#include "rushlight/engine/kernels/products/adapter.h"

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/loops/products/adapter.h"
#include "rushlight/engine/types/panels.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kRankGroup = 8;    // ranks of an item of the first product
constexpr int64_t kPanelGroup = 32;  // panels of an item of the second one

constexpr int64_t groups_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Items are groups of ranks, or of panels, within blocks of rows.
struct Adding {
  const AdapterProduct& product;
  const SiteWeights& weights;
  float* h;  // [rows, rank]
  const AdapterLoops& loops = adapter_loops();

  int64_t rank() const { return weights.rank; }
  bool is_half() const { return weights.dtype == DType::Float16; }
  int64_t row_blocks() const { return groups_of(product.rows, loops.rows); }
  int64_t rows_of(int64_t block) const {
    return least(product.rows - block * loops.rows, loops.rows);
  }
  const void* weight_at(const void* base, int64_t element) const {
    return static_cast<const char*>(base) + element * (is_half() ? 2 : 4);
  }

  void down(int64_t item) const {
    const int64_t groups = groups_of(rank(), kRankGroup);
    const int64_t block = item / groups, first = item % groups * kRankGroup;
    const int64_t row = block * loops.rows;
    AdapterDown tile;
    tile.depth = weights.in;
    tile.ranks = least(rank() - first, kRankGroup);
    tile.x = product.x + row * product.x_stride;
    tile.x_stride = product.x_stride;
    tile.a_stride = round_up(weights.in, kAdapterPad);
    tile.a = weight_at(weights.a, first * tile.a_stride);
    tile.out = h + row * rank() + first;
    tile.out_stride = rank();
    loops.down[is_half()][rows_of(block) - 1](tile);
  }

  void up(int64_t item) const {
    const int64_t groups = groups_of(panels_of(weights.out), kPanelGroup);
    const int64_t block = item / groups, panel = item % groups * kPanelGroup;
    const int64_t row = block * loops.rows;
    AdapterUp tile;
    tile.ranks = rank();
    tile.columns = least(weights.out - panel * kPanel, kPanelGroup * kPanel);
    tile.h = h + row * rank();
    tile.h_stride = rank();
    tile.b = weight_at(weights.b, panel * kPanel * rank());
    tile.y = product.y + row * product.y_stride + panel * kPanel;
    tile.y_stride = product.y_stride;
    loops.up[is_half()][rows_of(block) - 1](tile);
  }
};

template <void (Adding::*kItem)(int64_t) const>
void run_range(void* data, int64_t begin, int64_t end) {
  for (; begin < end; ++begin) (static_cast<const Adding*>(data)->*kItem)(begin);
}

}  // namespace

void add_adapter(const AdapterProduct& product, const SiteWeights& weights, float* scratch,
                 Workers* workers) {
  Adding adding = {product, weights, scratch};
  const int64_t rank = weights.rank, blocks = adding.row_blocks();
  share_out(blocks * groups_of(rank, kRankGroup), work_of({product.rows, rank, weights.in}),
            run_range<&Adding::down>, &adding, workers);
  share_out(blocks * groups_of(panels_of(weights.out), kPanelGroup),
            work_of({product.rows, rank, weights.out}), run_range<&Adding::up>, &adding, workers);
}

}  // namespace rushlight::engine
