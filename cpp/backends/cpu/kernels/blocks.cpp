#include "rushlight/backends/cpu/kernels/blocks.h"

namespace rushlight::cpu {
namespace {

constexpr double kLittleWork = 100'000;  // multiplications: less than waking a thread takes
// More shares than threads, should one of them come late or be slower.
constexpr int64_t kSharesPerThread = 4;
constexpr int64_t kGroupBytes = int64_t{512} * 1024;  // of A, in the second-level cache
constexpr int64_t kFinishRows = 56;  // whose results are surely in the first-level cache

void finish_rows(const BlockGrid& grid, int64_t row, int64_t end, int64_t panel, int64_t columns) {
  if (grid.finish.block == nullptr) return;
  grid.finish.block(grid.finish.data, row, end - row, panel * kPanel, columns);
}

// Sets the panels that follow to be fetched while blocks of rows from `first` on work on these.
// After the last ones of the last group come those of the next operator, if weights lie in the
// order of their use; what is fetched in vain is little, and no address is refused.
const char* set_ahead(const BlockGrid& grid, int64_t first, int64_t panel, int64_t n_panels,
                      GemmTile* tile) {
  const int64_t blocks = least(grid.group, grid.row_blocks);
  const bool last_group = first / grid.group == (grid.row_blocks - 1) / grid.group;
  int64_t next = panel + n_panels;
  if (next >= panels_of(grid.columns) && !last_group) next = 0;
  const int64_t row_bytes = kPanel * panel_bytes(grid.type);
  tile->ahead_step = (n_panels * row_bytes + blocks - 1) / blocks;
  const auto address = reinterpret_cast<uintptr_t>(grid.panels);
  return reinterpret_cast<const char*>(address +
                                       static_cast<uintptr_t>(next * grid.terms * row_bytes));
}

// Blocks of rows first..last-1 of `n_panels` panels from `panel` on.
void run_column(const BlockGrid& grid, int64_t first, int64_t last, int64_t panel,
                int64_t n_panels) {
  const GemmLoops& loops = gemm_loops();
  GemmTile tile = grid.tile;
  TileFinish finish;
  tile.b =
      static_cast<const char*>(grid.panels) + panel * grid.terms * kPanel * panel_bytes(grid.type);
  tile.b_panel = grid.terms * kPanel;
  tile.c_step = grid.c_step;
  tile.columns = least(n_panels * kPanel, grid.columns - panel * kPanel);
  finish.set(grid.finish, panel * kPanel, tile.columns, n_panels, &tile);
  const float* residual = tile.residual;
  const char* ahead = set_ahead(grid, first, panel, n_panels, &tile);
  const int64_t ahead_block = grid.terms * tile.ahead_step;
  ahead += first % grid.group * ahead_block;
  int64_t row = -1;
  int64_t finished = 0;
  for (int64_t block = first; block < last; ++block) {
    const int64_t next = grid.place(grid.data, block, &tile);
    if (row < 0) finished = row = next - tile.rows;
    tile.c = grid.c + row * grid.c_step + panel * kPanel;
    if (residual != nullptr) tile.residual = residual + row * tile.residual_step;
    tile.ahead = ahead + (block - first) * ahead_block;
    loops.of(grid.type).tile[tile.rows - 1][n_panels - 1](tile);
    row = next;
    if (row - finished + tile.rows > kFinishRows || block + 1 == last) {
      finish_rows(grid, finished, row, panel, tile.columns);
      finished = row;
    }
  }
}

void run_cells(void* data, int64_t begin, int64_t end) {
  const BlockGrid& grid = *static_cast<const BlockGrid*>(data);
  const int64_t width = gemm_loops().panels;
  const int64_t panels = panels_of(grid.columns);
  const int64_t columns = (panels + width - 1) / width;
  while (begin < end) {
    // Groups one after the other; in a group columns; of a column the blocks of rows.
    const int64_t first = begin / (grid.group * columns) * grid.group;
    const int64_t height = least(grid.row_blocks - first, grid.group);
    const int64_t cell = begin - first * columns;
    const int64_t block = cell % height;
    const int64_t count = least(height - block, end - begin);
    const int64_t panel = cell / height * width;
    run_column(grid, first + block, first + block + count, panel, least(panels - panel, width));
    begin += count;
  }
}

}  // namespace

double work_of(std::initializer_list<int64_t> sizes) {
  double work = 1;
  for (const int64_t size : sizes) work *= static_cast<double>(size);
  return work;
}

void share_out(int64_t items, double work, Workers::Task task, void* data, Workers* workers) {
  if (items <= 0) return;
  const auto threads = workers == nullptr ? 1 : static_cast<int64_t>(workers->count());
  if (threads == 1 || work < kLittleWork) return task(data, 0, items);
  const int64_t shares = threads * kSharesPerThread;
  workers->run(items, (items + shares - 1) / shares, task, data);
}

void BlockGrid::set_group(int64_t block_bytes) {
  group = block_bytes <= 0 ? row_blocks : kGroupBytes / block_bytes;
  if (group < 1) group = 1;
}

void run_blocks(const BlockGrid& grid, Workers* workers) {
  const int64_t width = gemm_loops().panels;
  const int64_t cells = grid.row_blocks * ((panels_of(grid.columns) + width - 1) / width);
  share_out(cells, grid.work(), run_cells, const_cast<BlockGrid*>(&grid), workers);
}

void TileFinish::set(const Finish& finish, int64_t column, int64_t columns, int64_t panels,
                     GemmTile* tile) {
  tile->bias = finish.bias == nullptr ? nullptr : finish.bias + column;
  if (tile->bias != nullptr && columns < panels * kPanel) {
    // Of a group of channels that ends within a panel, what follows belongs to the next.
    for (int64_t j = 0; j < panels * kPanel; ++j) bias[j] = j < columns ? tile->bias[j] : 0.0f;
    tile->bias = bias;
  }
  tile->residual = finish.residual == nullptr ? nullptr : finish.residual + column;
  tile->residual_step = finish.residual_step;
  tile->clamp = finish.low > -__builtin_inff() || finish.high < __builtin_inff();
  tile->low = finish.low;
  tile->high = finish.high;
}

Finish PartFinish::part() const {
  Finish finish = whole;
  if (whole.bias != nullptr) finish.bias = whole.bias + column;
  if (whole.residual != nullptr) {
    finish.residual = whole.residual + row * whole.residual_step + column;
  }
  if (whole.block != nullptr) {
    finish.block = &PartFinish::block;
    finish.data = this;
  }
  return finish;
}

void PartFinish::block(const void* data, int64_t row, int64_t rows, int64_t column,
                       int64_t columns) {
  const PartFinish& self = *static_cast<const PartFinish*>(data);
  self.whole.block(self.whole.data, self.row + row, rows, self.column + column, columns);
}

}  // namespace rushlight::cpu
