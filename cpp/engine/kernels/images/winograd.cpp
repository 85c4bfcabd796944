// Winograd's convolution F(4x4, 3x3) (Lavin and Gray, Fast Algorithms for Convolutional Neural
// Networks, 2016): 36 products of a tile's values at points give 16 results, which otherwise take
// 144. A block of tiles goes through all three stages while it is in the second-level cache.
#include "rushlight/engine/loops/images/winograd.h"
#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/blocks.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kBlockTiles = kMaxTileRows;

struct Plan {
  int64_t tiles_y, tiles_x, tiles;  // the first two of one image, the last of all images
  EvenBlocks blocks;

  explicit Plan(const ConvGeometry& g)
      : tiles_y((g.out_height + kWinogradOut - 1) / kWinogradOut),
        tiles_x((g.out_width + kWinogradOut - 1) / kWinogradOut),
        tiles(g.batch * tiles_y * tiles_x),
        blocks(tiles, kBlockTiles) {}
};

// The floats of one thread's scratch: values at the points before and after the products.
int64_t values_size(const ConvGeometry& g) {
  return round_up(kWinogradProducts * kBlockTiles * g.in_channels, kPanel);
}
int64_t thread_size(const ConvGeometry& g) {
  return values_size(g) + round_up(kWinogradProducts * kBlockTiles * g.out_channels, kPanel);
}

class Worker {
 public:
  Worker(const Convolution& convolution, const Plan& plan, float* scratch)
      : conv_(convolution),
        g_(convolution.geometry),
        plan_(plan),
        before_(scratch),
        after_(scratch + values_size(g_)) {}

  void run(int64_t block) {
    const int64_t first = plan_.blocks.start(block);
    const int64_t count = plan_.blocks.height(block);
    for (int64_t i = 0; i < count; ++i) read(first + i, i);
    multiply(count);
    for (int64_t i = 0; i < count; ++i) write(first + i, i);
  }

 private:
  struct Place {
    int64_t image, y, x;  // of the first result
  };
  Place place(int64_t tile) const {
    const int64_t in_image = tile % (plan_.tiles_y * plan_.tiles_x);
    return {tile / (plan_.tiles_y * plan_.tiles_x), in_image / plan_.tiles_x * kWinogradOut,
            in_image % plan_.tiles_x * kWinogradOut};
  }

  void read(int64_t number, int64_t slot) const {
    const Place at = place(number);
    WinogradInput tile;
    tile.in = conv_.in + at.image * conv_.in_batch_stride;
    tile.row_stride = conv_.in_row_stride;
    tile.column_stride = conv_.in_column_stride;
    tile.y = at.y - g_.pad_top;
    tile.x = at.x - g_.pad_left;
    tile.height = g_.in_height;
    tile.width = g_.in_width;
    tile.channels = g_.in_channels;
    tile.out = before_ + slot * g_.in_channels;
    tile.out_stride = kBlockTiles * g_.in_channels;
    winograd_loops().input(tile);
  }

  void multiply(int64_t count) const {
    const GemmLoops& loops = gemm_loops();
    const EvenBlocks rows(count, loops.rows);
    const int64_t panels = panels_of(g_.out_channels);
    GemmTile tile;
    tile.a_stride = tile.depth = g_.in_channels;
    tile.b_panel = g_.in_channels * kPanel;
    tile.c_stride = g_.out_channels;
    const float* weights = conv_.weights;
    for (int64_t product = 0; product < kWinogradProducts; ++product) {
      const float* const a = before_ + product * kBlockTiles * g_.in_channels;
      float* const c = after_ + product * kBlockTiles * g_.out_channels;
      for (int64_t panel = 0; panel < panels; panel += loops.panels) {
        const int64_t width = panels - panel < loops.panels ? panels - panel : loops.panels;
        tile.b = weights;
        weights += width * tile.b_panel;
        tile.columns = width * kPanel;
        tile.ahead_stride = width * kPanel * 4 / rows.blocks;
        for (int64_t block = 0; block < rows.blocks; ++block) {
          tile.rows = rows.height(block);
          tile.a[0] = a + rows.start(block) * g_.in_channels;
          tile.a[1] = tile.a[0] + kFirstRows * g_.in_channels;
          tile.c = c + rows.start(block) * g_.out_channels + panel * kPanel;
          // The prefetch after the last panel is useless but harmless.
          tile.ahead = reinterpret_cast<const char*>(
              reinterpret_cast<uintptr_t>(weights) +
              static_cast<uintptr_t>(block * tile.depth * tile.ahead_stride));
          loops.tile[tile.rows - 1][width - 1](tile);
        }
      }
    }
  }

  void write(int64_t number, int64_t slot) const {
    const Place at = place(number);
    const Epilogue& epilogue = conv_.epilogue;
    const int64_t row = (at.image * g_.out_height + at.y) * g_.out_width + at.x;
    WinogradOutput tile;
    tile.in = after_ + slot * g_.out_channels;
    tile.in_stride = kBlockTiles * g_.out_channels;
    tile.rows = g_.out_height - at.y;
    tile.columns = g_.out_width - at.x < kWinogradOut ? g_.out_width - at.x : kWinogradOut;
    tile.channels = g_.out_channels;
    tile.out = conv_.out + row * g_.out_channels;
    tile.column_stride = g_.out_channels;
    tile.row_stride = g_.out_width * g_.out_channels;
    tile.bias = epilogue.bias;
    if (epilogue.residual != nullptr)
      tile.residual = epilogue.residual + row * epilogue.residual_stride;
    tile.residual_column = epilogue.residual_stride;
    tile.residual_row = g_.out_width * epilogue.residual_stride;
    tile.clamp = epilogue.low > -__builtin_inff() || epilogue.high < __builtin_inff();
    tile.low = epilogue.low;
    tile.high = epilogue.high;
    winograd_loops().output(tile);
    if (epilogue.block == nullptr) return;
    for (int64_t y = 0; y < kWinogradOut && y < tile.rows; ++y) {
      epilogue.block(epilogue.data, row + y * g_.out_width, tile.columns, 0, g_.out_channels);
    }
  }

  const Convolution& conv_;
  const ConvGeometry& g_;
  const Plan& plan_;
  float* const before_;
  float* const after_;
};

}  // namespace

size_t winograd_scratch(const ConvGeometry& geometry, size_t threads) {
  if (is_empty(geometry)) return 0;
  return static_cast<size_t>(thread_size(geometry)) * sizeof(float) * threads + kCacheLine;
}

void convolve_winograd(const Convolution& conv, void* scratch, Workers* workers) {
  if (is_empty(conv.geometry)) return;
  const Plan plan(conv.geometry);
  float* const memory = align<float>(scratch);
  run_items(plan.blocks.blocks, workers, [&](int64_t thread) {
    return Worker(conv, plan, memory + thread * thread_size(conv.geometry));
  });
}

}  // namespace rushlight::engine
