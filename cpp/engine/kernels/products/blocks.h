// What products and convolutions share: the order in which blocks of a result are computed, and how
// they are shared out.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/loops/products/gemm.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t round_up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

// The approximate number of multiplications: a product of sizes, which may overflow an integer.
double work_of(std::initializer_list<int64_t> sizes);

// The threads for this much work; nullptr if it is too little to be shared out.
Workers* workers_for(double work, Workers* workers);

// Divides 0..items-1 into equal shares for the threads; small work runs on this thread alone.
void share_out(int64_t items, double work, Workers::Task task, void* data, Workers* workers);

// Runs items 0..items-1, each on the first thread that is free. `make_worker(thread)` returns an
// object with run(item), which uses that thread's part of the scratch memory.
template <class MakeWorker>
void run_items(int64_t items, Workers* workers, const MakeWorker& make_worker) {
  const int64_t threads = workers == nullptr ? 1 : static_cast<int64_t>(workers->count());
  std::atomic<int64_t> next{0};
  share_out(workers, least(threads, items), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      auto worker = make_worker(thread);
      for (int64_t item = next++; item < items; item = next++) worker.run(item);
    }
  });
}

// Blocks of rows whose heights differ by one at most: 128 rows are 8 of 13 and 2 of 12.
struct EvenBlocks {
  int64_t blocks;
  int64_t least;   // rows of a block
  int64_t longer;  // number of blocks, from the first on, that have one row more

  EvenBlocks(int64_t rows, int64_t highest)
      : blocks((rows + highest - 1) / highest), least(rows / blocks), longer(rows % blocks) {}
  int64_t start(int64_t block) const { return least * block + (block < longer ? block : longer); }
  int64_t height(int64_t block) const { return least + (block < longer ? 1 : 0); }
};

// A result of packed panels, divided into blocks of rows and into columns as wide as a tile. A
// column is computed from top to bottom, so that all blocks of rows but the first read its panels
// from the second-level cache. Blocks of rows are taken in groups whose inputs stay in cache.
struct BlockGrid {
  int64_t row_blocks = 0;
  int64_t group = 1;  // blocks of rows of a group
  int64_t width = 1;  // panels of a tile
  int64_t rows = 0, columns = 0;
  int64_t terms = 0;            // of one sum, over all taps
  int64_t iterations = 0;       // of a tile's inner loop, over all taps
  int64_t iteration_bytes = 0;  // that an iteration reads from a panel
  const void* panels = nullptr;
  // What is read after these panels, if it does not follow them in memory: `next_bytes` bytes for
  // each panel of a tile.
  const char* next[kMaxPanels] = {};
  int64_t next_bytes = 0;
  // Computes blocks of rows first..last-1 of `n_panels` panels from `panel` on.
  void (*column)(const BlockGrid& grid, int64_t first, int64_t last, int64_t panel,
                 int64_t n_panels) = nullptr;

  double work() const { return work_of({rows, terms, columns}); }
  int64_t panel_size() const { return iterations * iteration_bytes; }
  const char* panel_at(int64_t panel) const {
    return static_cast<const char*>(panels) + panel * panel_size();
  }
  // The number of columns in `n_panels` panels from `panel` on.
  int64_t columns_of(int64_t panel, int64_t n_panels) const {
    const int64_t left = columns - panel * kPanel;
    return left < n_panels * kPanel ? left : n_panels * kPanel;
  }
  // Chooses a group whose part of A (`block_bytes` for each block) fits in cache beside panels.
  // `a_size` and `out_size` are the bytes of an element of A and of the result.
  void set_group(int64_t block_bytes, int64_t a_size, int64_t out_size, const Workers* workers);
};
void run_blocks(const BlockGrid& grid, Workers* workers);

// What tiles prefetch while blocks of rows from `first` on use some panels: the panels that follow.
// After the last ones of the last group these are the next operator's, if weights lie in the order
// of their use. Little is fetched in vain, and any address is allowed.
class Ahead {
 public:
  Ahead(const BlockGrid& grid, int64_t first, int64_t panel, int64_t n_panels);
  int64_t stride() const { return stride_; }  // the bytes that each iteration of a tile fetches
  // The first address for the i-th block of rows from `first` on.
  const char* at(int64_t i) const {
    return i < blocks_ ? start_[0] + i * block_ : start_[1] + (i - blocks_) * block_;
  }

 private:
  const char* start_[kMaxPanels] = {};
  int64_t blocks_;  // blocks of rows that share one start
  int64_t block_;   // bytes from one block to the next
  int64_t stride_;
};

// Calls an Epilogue's `block` for blocks of rows, several at once while they are surely in cache.
class BlockEpilogue {
 public:
  BlockEpilogue(const Epilogue& epilogue, int64_t row, int64_t panel, int64_t columns)
      : epilogue_(epilogue), begin_(row), column_(panel * kPanel), columns_(columns) {}
  // Rows up to `end` are computed; the next block has `rows` rows.
  void advance(int64_t end, int64_t rows, bool last);

 private:
  const Epilogue& epilogue_;
  int64_t begin_, column_, columns_;
};

// The grid of a float32 product.
struct GemmGrid : BlockGrid {
  GemmTile tile;  // the fields that all tiles share: strides, taps, depth
  float* c = nullptr;
  int64_t c_stride = 0;
  Epilogue epilogue;
  // Sets the addresses of a block of rows of A in `tile`. Returns the first row after it.
  int64_t (*place)(const void* data, int64_t block, GemmTile* tile) = nullptr;
  const void* data = nullptr;

  explicit GemmGrid(int64_t sum_terms);
  void set_group(int64_t block_bytes, const Workers* workers) {
    BlockGrid::set_group(block_bytes, sizeof(float), sizeof(float), workers);
  }
};

// The bias, residual and clamp of `columns` columns from `column` on.
struct TileEpilogue {
  float bias[kMaxPanels * kPanel];
  void set(const Epilogue& epilogue, int64_t column, int64_t columns, int64_t panels,
           GemmTile* tile);
};

// The epilogue of a part of a result. It must outlive what part() returns.
struct PartEpilogue {
  Epilogue whole;
  int64_t row = 0, column = 0;
  Epilogue part() const;

 private:
  static void block(const void* data, int64_t row, int64_t rows, int64_t column, int64_t columns);
};

// Computes panels begin..end-1 of a product of few rows; the panels have no scales. With `fetches`,
// what follows them in memory is prefetched.
void multiply_narrow(const Product& product, int64_t begin, int64_t end, bool fetches);

// The layout of rows of A that lie in runs: row i is at a + i / run * run_stride + i % run *
// a_step.
struct RowRuns {
  int64_t run = 0;  // 0: all rows in one run
  int64_t run_stride = 0;
};
void multiply_runs(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
                   Workers* workers);

// The taps of a window that lie within an image, along one dimension: the first, their number, and
// the first one's position. `start` is the position of tap 0, which may lie outside.
struct Taps {
  int64_t first = 0, count = 0, position = 0;

  Taps() = default;
  Taps(int64_t start, int64_t dilation, int64_t kernel, int64_t size) {
    first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t end = start < size ? (size - start + dilation - 1) / dilation : 0;
    count = (end < kernel ? end : kernel) - first;
    if (count <= 0) first = count = start = 0;  // so that no address is formed outside
    position = start + first * dilation;
  }
};

constexpr size_t kCacheLine = 64;
template <typename T>
T* align(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<T*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
}

}  // namespace rushlight::engine
