#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {
namespace {

constexpr double kLittleWork = 100'000;  // multiplications that take less time than waking a thread
// More shares than threads, in case one of them starts late or is slower.
constexpr int64_t kSharesPerThread = 4;
constexpr int64_t kGroupBytes = int64_t{512} * 1024;  // of A that stay in the second-level cache
constexpr int64_t kEpilogueRows = 56;  // rows whose results are surely in the first-level cache

void run_column(const BlockGrid& base, int64_t first, int64_t last, int64_t panel,
                int64_t n_panels) {
  const auto& grid = static_cast<const GemmGrid&>(base);
  const GemmLoops& loops = gemm_loops();
  const Ahead ahead(grid, first, panel, n_panels);
  GemmTile tile = grid.tile;
  TileEpilogue epilogue;
  tile.b = grid.panel_at(panel);
  tile.b_panel = grid.terms * kPanel;
  tile.c_stride = grid.c_stride;
  tile.columns = grid.columns_of(panel, n_panels);
  tile.ahead_stride = ahead.stride();
  epilogue.set(grid.epilogue, panel * kPanel, tile.columns, n_panels, &tile);
  const float* residual = tile.residual;
  int64_t row = grid.place(grid.data, first, &tile) - tile.rows;
  BlockEpilogue block_epilogue(grid.epilogue, row, panel, tile.columns);
  for (int64_t block = first; block < last; ++block) {
    const int64_t next = grid.place(grid.data, block, &tile);
    tile.c = grid.c + row * grid.c_stride + panel * kPanel;
    if (residual != nullptr) tile.residual = residual + row * tile.residual_stride;
    tile.ahead = ahead.at(block - first);
    loops.tile[tile.rows - 1][n_panels - 1](tile);
    row = next;
    block_epilogue.advance(row, tile.rows, block + 1 == last);
  }
}

void run_cells(void* data, int64_t begin, int64_t end) {
  const BlockGrid& grid = *static_cast<const BlockGrid*>(data);
  const int64_t panels = panels_of(grid.columns);
  const int64_t columns = (panels + grid.width - 1) / grid.width;
  while (begin < end) {
    // The order is groups of blocks of rows, then columns, then the blocks of rows of a group.
    const int64_t first = begin / (grid.group * columns) * grid.group;
    const int64_t height = least(grid.row_blocks - first, grid.group);
    const int64_t cell = begin - first * columns;
    const int64_t block = cell % height;
    const int64_t count = least(height - block, end - begin);
    const int64_t panel = cell / height * grid.width;
    grid.column(grid, first + block, first + block + count, panel,
                least(panels - panel, grid.width));
    begin += count;
  }
}

// Divides items into shares whose sizes differ by one at most.
struct Shares {
  Workers::Task task;
  void* data;
  int64_t items, count;

  int64_t start(int64_t share) const {
    return items / count * share + items % count * share / count;
  }
};

void run_shares(void* data, int64_t begin, int64_t end) {
  const Shares& shares = *static_cast<const Shares*>(data);
  shares.task(shares.data, shares.start(begin), shares.start(end));
}

}  // namespace

double work_of(std::initializer_list<int64_t> sizes) {
  double work = 1;
  for (const int64_t size : sizes) work *= static_cast<double>(size);
  return work;
}

Workers* workers_for(double work, Workers* workers) {
  const bool shares = workers != nullptr && workers->count() > 1 && work >= kLittleWork;
  return shares ? workers : nullptr;
}

void share_out(int64_t items, double work, Workers::Task task, void* data, Workers* workers) {
  if (items <= 0) return;
  workers = workers_for(work, workers);
  if (workers == nullptr) return task(data, 0, items);
  const auto threads = static_cast<int64_t>(workers->count());
  Shares shares = {task, data, items, least(items, threads * kSharesPerThread)};
  workers->run(shares.count, 1, run_shares, &shares);
}

void BlockGrid::set_group(int64_t block_bytes, int64_t a_size, int64_t out_size,
                          const Workers* workers) {
  group = block_bytes <= 0 ? row_blocks : kGroupBytes / block_bytes;
  // If the weights are small beside inputs and results, each thread takes all of them for its own
  // rows, which are in its cache if it wrote them.
  const int64_t of_rows = row_blocks * block_bytes + rows * columns * out_size;
  if (workers != nullptr && 2 * terms * columns * a_size < of_rows) {
    const auto threads = static_cast<int64_t>(workers->count());
    group = least(group, (row_blocks + threads - 1) / threads);
  }
  if (group < 1) group = 1;
}

void run_blocks(const BlockGrid& grid, Workers* workers) {
  const int64_t cells = grid.row_blocks * ((panels_of(grid.columns) + grid.width - 1) / grid.width);
  share_out(cells, grid.work(), run_cells, const_cast<BlockGrid*>(&grid), workers);
}

Ahead::Ahead(const BlockGrid& grid, int64_t first, int64_t panel, int64_t n_panels)
    : blocks_(least(grid.group, grid.row_blocks)) {
  if (grid.next[0] != nullptr) {
    // The first blocks fetch parts of the first panel, the others of the second.
    blocks_ = (blocks_ + n_panels - 1) / n_panels;
    const int64_t iterations = blocks_ * grid.iterations;
    stride_ = iterations == 0 ? 0 : (grid.next_bytes + iterations - 1) / iterations;
    block_ = grid.iterations * stride_;
    for (int64_t i = 0; i < n_panels; ++i) start_[i] = grid.next[i];
    return;
  }
  const bool last_group = first / grid.group == (grid.row_blocks - 1) / grid.group;
  int64_t next = panel + n_panels;
  if (next >= panels_of(grid.columns) && !last_group) next = 0;
  stride_ = (n_panels * grid.iteration_bytes + blocks_ - 1) / blocks_;
  block_ = grid.iterations * stride_;
  const auto address = reinterpret_cast<uintptr_t>(grid.panels);
  const int64_t offset = next * grid.panel_size() + first % grid.group * block_;
  start_[0] = reinterpret_cast<const char*>(address + static_cast<uintptr_t>(offset));
}

void BlockEpilogue::advance(int64_t end, int64_t rows, bool last) {
  if (!last && end - begin_ + rows <= kEpilogueRows) return;
  if (epilogue_.block != nullptr) {
    epilogue_.block(epilogue_.data, begin_, end - begin_, column_, columns_);
  }
  begin_ = end;
}

GemmGrid::GemmGrid(int64_t sum_terms) {
  column = run_column;
  width = gemm_loops().panels;
  terms = iterations = sum_terms;
  iteration_bytes = kPanel * static_cast<int64_t>(sizeof(float));
}

void TileEpilogue::set(const Epilogue& epilogue, int64_t column, int64_t columns, int64_t panels,
                       GemmTile* tile) {
  tile->bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + column;
  if (tile->bias != nullptr && columns < panels * kPanel) {
    // If a group of channels ends within a panel, the bias after it belongs to the next group.
    for (int64_t j = 0; j < panels * kPanel; ++j) bias[j] = j < columns ? tile->bias[j] : 0.0f;
    tile->bias = bias;
  }
  tile->residual = epilogue.residual == nullptr ? nullptr : epilogue.residual + column;
  tile->residual_stride = epilogue.residual_stride;
  tile->clamp = epilogue.clamps();
  tile->low = epilogue.low;
  tile->high = epilogue.high;
}

Epilogue PartEpilogue::part() const {
  Epilogue epilogue = whole;
  if (whole.bias != nullptr) epilogue.bias = whole.bias + column;
  if (whole.residual != nullptr) {
    epilogue.residual = whole.residual + row * whole.residual_stride + column;
  }
  if (whole.block != nullptr) {
    epilogue.block = &PartEpilogue::block;
    epilogue.data = this;
  }
  return epilogue;
}

void PartEpilogue::block(const void* data, int64_t row, int64_t rows, int64_t column,
                         int64_t columns) {
  const PartEpilogue& self = *static_cast<const PartEpilogue*>(data);
  self.whole.block(self.whole.data, self.row + row, rows, self.column + column, columns);
}

}  // namespace rushlight::engine
