#include "rushlight/engine/kernels/products/row_blocks.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kPackSlack = 16;  // floats after each packed block

bool pays_to_pack(const Product& p, const RowRuns& runs) {
  if (runs.run != 0) return true;  // tiles cannot cross from run to run
  if (p.rows <= kNarrowRows) return false;
  // Rows that fall into one set of the first-level cache evict each other; others are read at full
  // speed without packing.
  return p.a_stride % 1024 == 0;
}

size_t packed_bytes(const Product& p) {
  const int64_t blocks = p.rows / kLeastTileRows + 1;  // for any instruction set
  const int64_t floats = p.rows * p.depth + (blocks + 1) * kPackSlack;
  return static_cast<size_t>(floats) * sizeof(float) + kCacheLine;
}

}  // namespace

size_t row_blocks_scratch(const Product& product, const RowRuns& runs) {
  return pays_to_pack(product, runs) ? packed_bytes(product) : 0;
}

RowBlocks::RowBlocks(const Product& product, const RowRuns& runs, void* scratch,
                     size_t scratch_size, Workers* workers)
    : product_(product), runs_(runs), blocks_(product.rows, gemm_loops().rows) {
  if (!pays_to_pack(product, runs) || scratch_size < packed_bytes(product)) return;
  packed_ = align<float>(scratch);
  const double work = work_of({product.rows, product.depth, product.columns});
  share_out(blocks_.blocks, work / 64, pack, this, workers);
}

const float* RowBlocks::row_at(int64_t row) const {
  if (runs_.run == 0) return product_.a + row * product_.a_stride;
  return product_.a + row / runs_.run * runs_.run_stride + row % runs_.run * product_.a_stride;
}

float* RowBlocks::packed_block(int64_t block) const {
  return packed_ + blocks_.start(block) * product_.depth + block * kPackSlack;
}

void RowBlocks::pack(void* data, int64_t begin, int64_t end) {
  const RowBlocks& self = *static_cast<const RowBlocks*>(data);
  for (int64_t block = begin; block < end; ++block) {
    const float* rows[kMaxTileRows];
    const int64_t height = self.blocks_.height(block);
    for (int64_t i = 0; i < height; ++i) rows[i] = self.row_at(self.blocks_.start(block) + i);
    gemm_loops().pack_rows(rows, height, self.product_.depth, self.packed_block(block));
  }
}

int64_t RowBlocks::place(int64_t block, int64_t term, GemmTile* tile) const {
  const int64_t row = blocks_.start(block);
  tile->rows = blocks_.height(block);
  if (packed_ != nullptr) {
    tile->a[0] = packed_block(block);
    tile->a_stride = 1;
    tile->k_stride = tile->rows;
  } else {
    tile->a[0] = row_at(row);
    tile->a_stride = product_.a_stride;
  }
  tile->a[0] += term * tile->k_stride;
  tile->a[1] = tile->a[0] + kFirstRows * tile->a_stride;
  return row + tile->rows;
}

}  // namespace rushlight::engine
