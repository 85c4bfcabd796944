#include "rushlight/kernels/portable/linalg/gemm.h"

#include <algorithm>
#include <utility>

namespace rushlight::kernels {
namespace {

constexpr int64_t kMaxWorkspace = int64_t{1} << 18;  // floats; 1 MiB, about an L2 cache
constexpr int64_t kMinDotLength = 32;                // minimum k for dot products without packing

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A part of the product: rows from i0, columns from j0, and the k range of one block.
struct Part {
  int64_t i0;
  int64_t j0;
  int64_t rows;
  int64_t cols;
  int64_t k;
  bool first;  // the first block of k, to which `add` is added; later blocks add to C
};

// After the first block of k, adds to C itself, if C has no grid.
void set_add(const Product& p, const Part& part, GemmTile* tile) {
  if (!part.first && p.grid == nullptr) {
    tile->add = p.c + part.i0 * p.c_row + part.j0 * p.c_col;
    tile->add_row = p.c_row;
    tile->add_col = p.c_col;
    tile->beta = 1;
  } else if (!part.first) {
    return;
  } else if (p.add != nullptr) {
    tile->add = p.add + part.i0 * p.add_row + part.j0 * p.add_col;
    tile->add_row = p.add_row;
    tile->add_col = p.add_col;
    tile->beta = p.beta;
  }
}

// Writes sums from a buffer to C, if C's columns are not consecutive or the tile is not full.
void store_results(const Product& p, const Part& part, const GemmTile& tile, const float* sums,
                   int64_t stride) {
  float* c = p.c + part.i0 * p.c_row + part.j0 * p.c_col;
  for (int64_t i = 0; i < part.rows; ++i) {
    for (int64_t j = 0; j < part.cols; ++j) {
      float result = tile.alpha * sums[i * stride + j];
      if (tile.add != nullptr) {
        result += tile.beta * tile.add[i * tile.add_row + j * tile.add_col];
      }
      c[i * p.c_row + j * p.c_col] = result;
    }
  }
}

// The same if C's columns are on a grid.
void store_results_on_grid(const Product& p, const Part& part, const GemmTile& tile,
                           const float* sums, int64_t stride) {
  for (int64_t j = 0; j < part.cols; ++j) {
    float* c = p.c + part.i0 * p.c_row + p.grid->offset(part.j0 + j);
    for (int64_t i = 0; i < part.rows; ++i) {
      float result = tile.alpha * sums[i * stride + j];
      if (!part.first) {
        result += c[i * p.c_row];
      } else if (tile.add != nullptr) {
        result += tile.beta * tile.add[i * tile.add_row + j * tile.add_col];
      }
      c[i * p.c_row] = result;
    }
  }
}

// Computes one tile of C, `width` columns wide, of which part.cols are stored.
void run_tile(const Product& p, const Part& part, GemmTileFn fn, int64_t width, const float* a,
              const float* b, int64_t b_stride) {
  GemmTile tile;
  tile.k = part.k;
  tile.a = a;
  tile.b = b;
  tile.b_stride = b_stride;
  tile.alpha = p.alpha;
  set_add(p, part, &tile);
  if (p.c_col == 1 && p.grid == nullptr && part.cols == width &&
      (tile.add == nullptr || tile.add_col <= 1)) {
    tile.c = p.c + part.i0 * p.c_row + part.j0;
    tile.c_stride = p.c_row;
    return fn(tile);
  }
  alignas(64) float sums[kMaxTileFloats];
  GemmTile into_sums = tile;
  into_sums.alpha = 1;
  into_sums.add = nullptr;
  into_sums.c = sums;
  into_sums.c_stride = width;
  fn(into_sums);
  if (p.grid != nullptr) return store_results_on_grid(p, part, tile, sums, width);
  store_results(p, part, tile, sums, width);
}

// The offset for index 0 and k. The next k adds one of four strides.
int64_t weight_offset(const WeightTaps& w, int64_t k) {
  const int64_t taps = int64_t{w.taps[0]} * w.taps[1] * w.taps[2];
  const int64_t channel = w.channels_innermost ? k % w.channels : k / taps;
  const int64_t tap = w.channels_innermost ? k / w.channels : k % taps;
  return channel * w.channel_stride + tap % w.taps[2] * w.tap_strides[2] +
         tap / w.taps[2] % w.taps[1] * w.tap_strides[1] +
         tap / w.taps[2] / w.taps[1] * w.tap_strides[0];
}

void pack_weights(const Factor& f, int64_t i0, int count, int64_t k0, int64_t n, float* out,
                  int64_t pitch) {
  for (int64_t k = 0; k < n; ++k) {
    const float* in = f.data + i0 * f.i_stride + weight_offset(*f.weights, k0 + k);
    for (int i = 0; i < count; ++i) out[k * pitch + i] = in[i * f.i_stride];
    for (int64_t i = count; i < pitch; ++i) out[k * pitch + i] = 0;
  }
}

// Packs rows i0.. of a factor for k0.. as a panel. `pitch` may exceed `count`.
void pack(const Factor& f, int64_t i0, int count, int64_t k0, int64_t n, float* out,
          int64_t pitch) {
  if (f.window != nullptr) return f.pack_window(*f.window, i0, count, k0, n, out, pitch);
  if (f.weights != nullptr) return pack_weights(f, i0, count, k0, n, out, pitch);
  const GemmLoops& loops = gemm_loops();
  const float* in = f.data + i0 * f.i_stride + k0 * f.k_stride;
  if (f.i_stride == 1 && f.k_stride != 1)
    return loops.pack_columns(in, f.k_stride, count, n, out, pitch);
  if (f.k_stride != 1) {
    for (int64_t k = 0; k < n; ++k) {
      for (int i = 0; i < count; ++i) out[k * pitch + i] = in[i * f.i_stride + k * f.k_stride];
      for (int64_t i = count; i < pitch; ++i) out[k * pitch + i] = 0;
    }
    return;
  }
  const float* rows[kMaxPanelWidth];
  for (int i = 0; i < count; ++i) rows[i] = in + i * f.i_stride;
  // Starts with the last group: the previous group overwrites what a group writes past its end.
  for (int64_t i = (count - 1) / loops.lanes * loops.lanes; i >= 0; i -= loops.lanes) {
    const int64_t group = std::min(count - i, loops.lanes);
    loops.pack_rows(rows + i, static_cast<int>(group), n, out + i, pitch);
  }
}

// How the blocked algorithm divides the product.
struct Blocks {
  int64_t k;       // length of a block along k
  int64_t panels;  // panels of A in a block
  int64_t n_panels;
  int64_t tall;  // the first `n_tall` panels of A have this height, the others one less
  int64_t n_tall;

  int64_t height(int64_t panel) const { return panel < n_tall ? tall : tall - 1; }
  int64_t row(int64_t panel) const { return panel * tall - std::max<int64_t>(panel - n_tall, 0); }
};

Blocks cut(const Product& p, int64_t floats, const GemmLoops& loops) {
  Blocks blocks;
  // Panels have nearly equal heights, so that the last one wastes nothing.
  blocks.n_panels = ceil_div(p.m, loops.height);
  blocks.tall = ceil_div(p.m, blocks.n_panels);
  blocks.n_tall = p.m - blocks.n_panels * (blocks.tall - 1);
  const int64_t width = kPanelVectors * loops.lanes;
  // pack_rows writes a whole vector for each k, so it may write up to one vector past the end.
  const int64_t room = floats - loops.lanes;
  // Uses a quarter of the room for B's panel, if that is enough for a short panel.
  const int64_t longest = std::min(
      {loops.k_block, room / (blocks.tall + width), std::max<int64_t>(room / 4 / width, 16)});
  blocks.k = ceil_div(p.k, ceil_div(p.k, longest));
  const int64_t fit = (room - blocks.k * width) / (blocks.k * blocks.tall);
  blocks.panels = ceil_div(blocks.n_panels, ceil_div(blocks.n_panels, fit));
  return blocks;
}

// Multiplies one panel of B by a block of A's panels.
void run_panel(const Product& p, const Blocks& blocks, Part part, int64_t first, int64_t last,
               const float* a, const float* b, int64_t b_stride) {
  const GemmLoops& loops = gemm_loops();
  const int64_t vectors = ceil_div(part.cols, loops.lanes);
  for (int64_t panel = first; panel < last; ++panel) {
    part.i0 = blocks.row(panel);
    part.rows = blocks.height(panel);
    // cut() keeps heights, and run_panel's caller widths, within the table.
    const GemmTileFn fn = loops.tile[part.rows - 1][vectors - 1];  // NOLINT(*ArrayBound)
    run_tile(p, part, fn, vectors * loops.lanes, a, b, b_stride);
    a += part.rows * part.k;
  }
}

void multiply_blocked(const Workspace& work, const Product& p) {
  const GemmLoops& loops = gemm_loops();
  const int64_t width = kPanelVectors * loops.lanes;
  // The number of B's panels that are processed at a time depends on the memory alone.
  const int64_t longest = loops.k_block * width;
  const int64_t n_shares =
      std::min<int64_t>(std::max<int64_t>(work.size() / 4 / longest, 1), Shares::kMaxShares);
  const Blocks blocks = cut(p, work.size() - (n_shares - 1) * longest, loops);
  float* const b_panels = work.data();
  float* const a_panels = b_panels + n_shares * blocks.k * width;
  Shares shares(static_cast<int>(n_shares));
  for (int64_t first = 0; first < blocks.n_panels; first += blocks.panels) {
    const int64_t last = std::min(first + blocks.panels, blocks.n_panels);
    // With few tiles for each panel, B is read in place: packing would cost as much.
    const bool direct = p.b.columns_lie_flat() && last - first <= 2;
    for (int64_t k0 = 0; k0 < p.k; k0 += blocks.k) {
      Part part{0, 0, 0, 0, std::min(blocks.k, p.k - k0), k0 == 0};
      float* a = a_panels;
      for (int64_t panel = first; panel < last; ++panel) {
        const int64_t height = blocks.height(panel);
        pack(p.a, blocks.row(panel), static_cast<int>(height), k0, part.k, a, height);
        a += height * part.k;
      }
      const int64_t rows = blocks.row(last) - blocks.row(first);
      const auto panel = [&](int64_t j, float* b_panel) {
        Part here = part;
        here.j0 = j * width;
        here.cols = std::min(width, p.n - here.j0);
        if (direct && here.cols == width) {
          const float* b = p.b.data + here.j0 + k0 * p.b.k_stride;
          return run_panel(p, blocks, here, first, last, a_panels, b, p.b.k_stride);
        }
        const int64_t pitch = ceil_div(here.cols, loops.lanes) * loops.lanes;
        pack(p.b, here.j0, static_cast<int>(here.cols), k0, part.k, b_panel, pitch);
        run_panel(p, blocks, here, first, last, a_panels, b_panel, pitch);
      };
      work.context().parallel(ceil_div(p.n, width), kProductGrain / (rows * part.k * width) + 1,
                              [&](int64_t begin, int64_t end) {
                                const int share = shares.take();
                                for (int64_t j = begin; j < end; ++j)
                                  panel(j, b_panels + share * blocks.k * width);
                                shares.give(share);
                              });
    }
  }
}

// Writes a tile of dot products to C. What does not change in the tile is read before its loops, so
// that these are as fast at any level of optimization.
inline void store_dots(const Product& p, int64_t i0, int64_t j0, int64_t rows, int64_t cols,
                       const float* sums) {
  const float alpha = p.alpha;
  const float beta = p.beta;
  const int64_t c_col = p.c_col;
  const int64_t add_col = p.add_col;
  for (int64_t i = 0; i < rows; ++i, sums += kDotRows) {
    float* c = p.c + (i0 + i) * p.c_row + j0 * c_col;
    if (p.add == nullptr) {
      for (int64_t j = 0; j < cols; ++j) c[j * c_col] = alpha * sums[j];
      continue;
    }
    const float* add = p.add + (i0 + i) * p.add_row + j0 * add_col;
    for (int64_t j = 0; j < cols; ++j) {
      float result = alpha * sums[j];
      result += beta * add[j * add_col];
      c[j * c_col] = result;
    }
  }
}

// For few rows if k is consecutive in both factors: dot products.
void multiply_dots(KernelContext& ctx, const Product& p) {
  const GemmLoops& loops = gemm_loops();
  const int64_t grain = kProductGrain / (p.m * p.k * kDotRows) + 1;
  ctx.parallel(ceil_div(p.n, kDotRows), grain, [&](int64_t begin, int64_t end) {
    const int64_t last = std::min(p.n, end * kDotRows);
    for (int64_t j0 = begin * kDotRows; j0 < last; j0 += kDotRows) {
      const int64_t cols = std::min(kDotRows, last - j0);
      for (int64_t i0 = 0; i0 < p.m; i0 += kDotRows) {
        const int64_t rows = std::min(kDotRows, p.m - i0);
        float sums[kDotRows * kDotRows];
        loops.dot(p.a.data + i0 * p.a.i_stride, p.a.i_stride, static_cast<int>(rows),
                  p.b.data + j0 * p.b.i_stride, p.b.i_stride, static_cast<int>(cols), p.k, sums);
        store_dots(p, i0, j0, rows, cols, sums);
      }
    }
  });
}

// For few rows (at most wide_height) if B's columns are consecutive: tiles as wide as the registers
// allow, with B read in place.
void multiply_wide(const Workspace& work, const Product& p) {
  const GemmLoops& loops = gemm_loops();
  const int64_t height = p.m;
  const int64_t longest = (work.size() - loops.lanes * kPanelVectors) / (height + loops.lanes);
  const int64_t block = std::min(p.k, longest);
  float* const a_panel = work.data();
  float* const edge = a_panel + block * height;  // a panel of one vector for the last columns
  const int64_t lanes = loops.lanes;
  const int64_t wide = loops.wide_vectors[height - 1] * lanes;  // NOLINT(*ArrayBound)
  for (int64_t k0 = 0; k0 < p.k; k0 += block) {
    Part part{0, 0, p.m, wide, std::min(block, p.k - k0), k0 == 0};
    for (int64_t k = 0; k < part.k; ++k) {
      for (int64_t i = 0; i < height; ++i) {
        a_panel[k * height + i] = p.a.data[i * p.a.i_stride + (k0 + k) * p.a.k_stride];
      }
    }
    const float* b = p.b.data + k0 * p.b.k_stride;
    work.context().parallel(
        p.n / wide, kProductGrain / (p.m * part.k * wide) + 1, [&](int64_t begin, int64_t end) {
          Part here = part;
          for (here.j0 = begin * wide; here.j0 < end * wide; here.j0 += wide) {
            run_tile(p, here, loops.wide[height - 1], wide, a_panel, b + here.j0, p.b.k_stride);
          }
        });
    part.j0 = p.n / wide * wide;
    part.cols = lanes;
    for (; part.j0 + lanes <= p.n; part.j0 += lanes) {
      run_tile(p, part, loops.tile[height - 1][0], lanes, a_panel, b + part.j0, p.b.k_stride);
    }
    part.cols = p.n - part.j0;
    if (part.cols == 0) continue;
    pack(p.b, part.j0, static_cast<int>(part.cols), k0, part.k, edge, lanes);
    run_tile(p, part, loops.tile[height - 1][0], lanes, a_panel, edge, lanes);
  }
}

// For k = 0: C becomes the addend.
void fill(const Product& p) {
  const Part part{0, 0, p.m, p.n, 0, true};
  const float zero = 0;
  GemmTile tile;
  tile.alpha = 0;
  set_add(p, part, &tile);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      Product one = p;
      one.c = p.c + i * p.c_row + (p.grid != nullptr ? p.grid->offset(j) : j * p.c_col);
      GemmTile at = tile;
      if (at.add != nullptr) at.add += i * at.add_row + j * at.add_col;
      store_results(one, {0, 0, 1, 1, 0, true}, at, &zero, 0);
    }
  }
}

void swap_factors(Product* p) {
  std::swap(p->m, p->n);
  std::swap(p->a, p->b);
  std::swap(p->c_row, p->c_col);
  std::swap(p->add_row, p->add_col);
}

// True if vectors along the rows of C are much better filled than vectors along its columns. Then
// the transposed product is faster, although its tiles are stored to C one element at a time.
bool wastes_columns(const Product& p) {
  const int64_t lanes = gemm_loops().lanes;
  const auto computed = [&](int64_t i, int64_t j) { return i * ceil_div(j, lanes) * lanes * p.k; };
  constexpr int64_t kStoreCost = 48;  // cost of storing one element of C, in multiplications
  return p.n > lanes && p.m >= 2 * lanes &&
         computed(p.m, p.n) > computed(p.n, p.m) + kStoreCost * p.m * p.n;
}

}  // namespace

int Shares::take() {
  for (;;) {
    uint32_t taken = taken_.load(std::memory_order_relaxed);
    for (int share = 0; share < count_; ++share) {
      if ((taken >> share & 1u) != 0) continue;
      const uint32_t mine = taken | 1u << share;
      if (taken_.compare_exchange_weak(taken, mine, std::memory_order_acquire)) return share;
      break;
    }
  }
}

Workspace::Workspace(KernelContext& ctx) : ctx_(ctx), data_(stack_), size_(kStackFloats) {
  const int64_t left = static_cast<int64_t>(ctx.scratch_left() / sizeof(float));
  if (left <= kStackFloats) return;
  const int64_t wanted = std::min(left, kMaxWorkspace);
  void* scratch = ctx.scratch(static_cast<size_t>(wanted) * sizeof(float));
  if (scratch == nullptr) return;
  data_ = static_cast<float*>(scratch);
  size_ = wanted;
}

void multiply(const Workspace& work, Product p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return fill(p);
  const GemmLoops& loops = gemm_loops();
  if (p.grid != nullptr) return multiply_blocked(work, p);
  if (p.c_row == 1 ? p.c_col != 1 : wastes_columns(p)) swap_factors(&p);
  if (p.n < p.m && p.n <= loops.wide_height && p.a.plain() && p.b.plain()) swap_factors(&p);
  if constexpr (selection::kProducts.dots) {
    if (p.m <= 2 * kDotRows && p.k >= kMinDotLength && p.a.rows_lie_flat() && p.b.rows_lie_flat()) {
      return multiply_dots(work.context(), p);
    }
  }
  if constexpr (selection::kProducts.wide) {
    if (p.m <= std::min(loops.wide_height, loops.height) && p.a.plain() && p.b.columns_lie_flat()) {
      return multiply_wide(work, p);
    }
  }
  multiply_blocked(work, p);
}

}  // namespace rushlight::kernels
