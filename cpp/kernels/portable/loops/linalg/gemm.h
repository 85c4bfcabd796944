// Inner loops of the float32 matrix product: register tiles, and packing of operands into the
// panels that tiles read. The blocking is in linalg/gemm.h.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::kernels {

// C[i][j] = alpha * sum over k of A[i][k] B[k][j]  +  beta * add[i][j], for one tile of C.
struct GemmTile {
  int64_t k = 0;
  const float* a = nullptr;  // packed: element (i, k) at k * height + i
  const float* b = nullptr;  // element (k, j) at k * b_stride + j
  int64_t b_stride = 0;
  float* c = nullptr;  // element (i, j) at i * c_stride + j
  int64_t c_stride = 0;
  const float* add = nullptr;  // element (i, j) at i * add_row + j * add_col; nullptr adds nothing
  int64_t add_row = 0;
  int64_t add_col = 0;  // 0 or 1
  float alpha = 1;
  float beta = 1;
};
using GemmTileFn = void (*)(const GemmTile& tile);

constexpr int kMaxTileHeight = 14;
constexpr int64_t kPanelVectors = 2;  // width of a full panel of B, in vectors
constexpr int kMaxWideHeight = 6;     // maximum rows of A for which B is read in place
constexpr int64_t kMaxTileFloats = int64_t{28} * 16;
constexpr int64_t kMaxPanelWidth = int64_t{2} * 16;
constexpr int64_t kDotRows = 4;  // maximum rows of either operand in a call of `dot`

struct GemmLoops {
  int64_t lanes;
  int64_t height;       // maximum height of a tile, in this build
  int64_t wide_height;  // maximum height that has a wide tile
  int64_t k_block;      // length of a panel: two panels this long fit into L1 or nearly so
  GemmTileFn tile[kMaxTileHeight][kPanelVectors];  // [height - 1][vectors - 1]
  // [height - 1], wide_vectors wide; nullptr if this build leaves it out (kernel/selection.h)
  GemmTileFn wide[kMaxWideHeight];
  int64_t wide_vectors[kMaxWideHeight];

  // out[k * pitch + i] = rows[i][k] for i < count <= lanes, k < n. Writes up to `lanes` elements
  // for each k. The elements beyond `count` are undefined; the next k overwrites them if they are
  // within its pitch.
  void (*pack_rows)(const float* const* rows, int count, int64_t n, float* out, int64_t pitch);
  // out[k * pitch + i] = in[k * stride + i] for i < count, k < n. Elements from count to pitch are
  // zeros.
  void (*pack_columns)(const float* in, int64_t stride, int count, int64_t n, float* out,
                       int64_t pitch);
  // sums[r * kDotRows + s] = sum over k of a[r * a_stride + k] * b[s * b_stride + k], for r < rows,
  // s < cols. nullptr if this build leaves it out.
  void (*dot)(const float* a, int64_t a_stride, int rows, const float* b, int64_t b_stride,
              int cols, int64_t k, float* sums);
};

RL_LOOPS(GemmLoops, gemm_loops)

}  // namespace rushlight::kernels
