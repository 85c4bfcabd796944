#include "rushlight/backends/cpu/kernels/blocks.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kLittleWork = 100'000;  // multiplications: less than waking a thread takes
// More shares than threads, should one of them come late or be slower.
constexpr int64_t kSharesPerThread = 4;

void run_cells(void* data, int64_t begin, int64_t end) {
  const BlockGrid& grid = *static_cast<const BlockGrid*>(data);
  const int64_t width = gemm_loops().panels;
  const int64_t columns = (grid.panels + width - 1) / width;
  while (begin < end) {
    // Groups one after the other; in a group panels; of a panel the blocks of rows.
    const int64_t first = begin / (grid.group * columns) * grid.group;
    const int64_t left = grid.row_blocks - first;
    const int64_t height = left < grid.group ? left : grid.group;
    const int64_t cell = begin - first * columns;
    const int64_t column = cell / height;
    const int64_t block = cell % height;
    int64_t count = height - block;
    if (count > end - begin) count = end - begin;
    const int64_t panel = column * width;
    const int64_t n_panels = grid.panels - panel < width ? grid.panels - panel : width;
    grid.column(grid.data, first + block, first + block + count, panel, n_panels);
    begin += count;
  }
}

}  // namespace

void share_out(int64_t items, int64_t work, Workers::Task task, void* data, Workers* workers) {
  if (items <= 0) return;
  const auto threads = workers == nullptr ? 1 : static_cast<int64_t>(workers->count());
  if (threads == 1 || work < kLittleWork) return task(data, 0, items);
  const int64_t shares = threads * kSharesPerThread;
  workers->run(items, (items + shares - 1) / shares, task, data);
}

void run_blocks(const BlockGrid& grid, Workers* workers) {
  const int64_t width = gemm_loops().panels;
  const int64_t cells = grid.row_blocks * ((grid.panels + width - 1) / width);
  share_out(cells, grid.work, run_cells, const_cast<BlockGrid*>(&grid), workers);
}

void set_finish(const Finish& finish, int64_t panel, GemmTile* tile) {
  tile->bias = finish.bias == nullptr ? nullptr : finish.bias + panel * kPanel;
  tile->clamp = finish.low > -__builtin_inff() || finish.high < __builtin_inff();
  tile->low = finish.low;
  tile->high = finish.high;
}

}  // namespace rushlight::cpu
