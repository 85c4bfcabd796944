// What products and convolutions share: the order in which blocks of a result are computed, and how
// they are shared out.
#pragma once

#include <cstdint>

#include "rushlight/backends/cpu/kernels/product.h"
#include "rushlight/backends/cpu/loops/gemm.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

// A result is cut into blocks of rows, and into panels. Panels of a tile's width are taken one
// after the other, so that they are read from the second-level cache by all blocks of rows but the
// first; blocks of rows are taken in groups whose inputs stay in cache.
struct BlockGrid {
  int64_t row_blocks = 0;
  int64_t group = 1;  // blocks of rows of a group
  int64_t panels = 0;
  int64_t work = 0;  // multiplications of the whole
  // Computes blocks of rows first..last-1 of `n_panels` panels from `panel` on.
  void (*column)(const void* data, int64_t first, int64_t last, int64_t panel,
                 int64_t n_panels) = nullptr;
  const void* data = nullptr;
};
void run_blocks(const BlockGrid& grid, Workers* workers);

// Cuts 0..items-1 into equal shares for the threads; on this thread if it is little work.
void share_out(int64_t items, int64_t work, Workers::Task task, void* data, Workers* workers);

// Blocks of rows whose heights differ by one at most: 128 rows are 8 of 13 and 2 of 12.
struct EvenBlocks {
  int64_t rows = 0;
  int64_t blocks = 0;

  EvenBlocks(int64_t n_rows, int64_t highest)
      : rows(n_rows), blocks((n_rows + highest - 1) / highest) {}
  int64_t start(int64_t block) const {
    const int64_t longer = rows % blocks;
    return rows / blocks * block + (block < longer ? block : longer);
  }
  int64_t height(int64_t block) const { return start(block + 1) - start(block); }
};

// A product whose rows of A lie in runs: row i at a + i / run * run_step + i % run * a_step.
struct RowRuns {
  int64_t run = 0;  // 0: all rows in one run
  int64_t run_step = 0;
};
void multiply_runs(const Product& product, const RowRuns& runs, void* scratch, size_t scratch_size,
                   Workers* workers);

// Puts bias and clamp of panels from `panel` on, and what follows from it, into a tile.
void set_finish(const Finish& finish, int64_t panel, GemmTile* tile);

constexpr size_t kCacheLine = 64;
inline float* align_floats(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<float*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
}

}  // namespace rushlight::cpu
