// Depthwise convolutions of bytes. Four rows of an image are interleaved, so that a dot product of
// four bytes sums up four taps of a column; with the weights moved down by a row, the same bytes
// give the next row of results.
#include "rushlight/engine/loops/images/dot_depthwise.h"

#include <cstring>

#include "rushlight/engine/kernels/images/quantized_convolution.h"
#include "rushlight/engine/kernels/products/dot_blocks.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kChunkPanels = 2;  // panels of channels that are requantized together
// The same for loops over whole bands, and how many panels they take at once.
constexpr int64_t kBandPanels = 16;
constexpr int64_t kBands = 8;
constexpr int64_t kMaxRows = 4;      // rows of results from the same interleaved bytes
constexpr int64_t kMaxPixels = 32;   // of a row that are summed up before they are requantized
constexpr int64_t kMaxColumns = 80;  // of an image that are interleaved at a time

// How a convolution is divided.
struct Plan {
  const QuantizedConvolution* convolution = nullptr;
  uint8_t* weights = nullptr;  // [panel][row of results][quad of rows][tap x] in quads
  uint8_t* padding = nullptr;  // a row of padding, as long as a row of the image
  void (*run_bands)(const DepthwiseBands& bands) = nullptr;  // of whole panels
  int64_t quads;                                             // quads of the kernel's rows
  int64_t rows;   // of results from the same interleaved bytes
  int64_t bands;  // of `rows` rows, in one image
  int64_t at_once;
  int64_t chunk_panels, chunks;
  int64_t pixels;  // of a row of results that are summed up before they are requantized
  int64_t taps;    // of a row of the kernel at once

  Plan(const ConvGeometry& g, int64_t threads) : quads(quads_of(g.kernel_y)), rows(1) {
    if (suits_bands(g)) run_bands = dot_depthwise_loops().bands[g.stride_x - 1];
    if (g.stride_y == 1 && g.dilation_y == 1) rows = quads * kQuad - g.kernel_y + 1;
    rows = least(rows, kMaxRows);
    bands = (g.out_height + rows - 1) / rows;
    at_once = run_bands != nullptr ? kBands : 1;
    chunk_panels = run_bands != nullptr ? kBandPanels : kChunkPanels;
    chunks = (panels_of(g.out_channels) + chunk_panels - 1) / chunk_panels;
    if (run_bands != nullptr && chunks < 2 * threads) {  // as many chunks for each thread
      const int64_t of_thread = (bands + kBands * threads - 1) / (kBands * threads);
      at_once = (bands + of_thread * threads - 1) / (of_thread * threads);
    }
    pixels = least((kMaxColumns - 1) / g.stride_x + 1, kMaxPixels);
    taps = least((kMaxColumns - 1 - (pixels - 1) * g.stride_x) / g.dilation_x + 1, g.kernel_x);
  }
  static bool suits_bands(const ConvGeometry& g) {
    return g.kernel_y == 3 && g.kernel_x == 3 && g.dilation_y == 1 && g.dilation_x == 1 &&
           g.stride_y == g.stride_x && g.stride_x <= 2 && g.out_channels == g.in_channels;
  }
  int64_t panel_bytes(const ConvGeometry& g) const {
    return rows * quads * g.kernel_x * kQuadBytes;
  }
  int64_t band_groups() const { return (bands + at_once - 1) / at_once; }
  // Row y of an image, which may lie outside.
  const uint8_t* row_at(int64_t image, int64_t y) const {
    const QuantizedConvolution& conv = *convolution;
    if (y < 0 || y >= conv.geometry.in_height) return padding;
    return conv.in + image * conv.in_batch_stride + y * conv.in_row_stride;
  }
};

// --- weights ------------------------------------------------------------------------------------

void pack_panels(void* data, int64_t begin, int64_t end) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const ConvGeometry& g = plan.convolution->geometry;
  constexpr uint8_t kZeros[kPanel] = {};
  const int64_t stride = panels_of(g.out_channels) * kPanel;
  QuadRows quad;
  quad.columns = g.kernel_x;
  quad.channels = kPanel;
  for (int64_t panel = begin; panel < end; ++panel) {
    const uint8_t* from = static_cast<const uint8_t*>(plan.convolution->weights) + panel * kPanel;
    uint8_t* out = plan.weights + panel * plan.panel_bytes(g);
    for (int64_t row = 0; row < plan.rows; ++row) {
      for (int64_t q = 0; q < plan.quads; ++q, out += g.kernel_x * kQuadBytes) {
        for (int64_t j = 0; j < kQuad; ++j) {
          const int64_t y = q * kQuad + j - row;
          const bool inside = y >= 0 && y < g.kernel_y;
          quad.rows[j] = inside ? from + y * g.kernel_x * stride : kZeros;
          quad.strides[j] = inside ? stride : 0;
        }
        dot_depthwise_loops().interleave(quad, out);
      }
    }
  }
}

// --- sums ---------------------------------------------------------------------------------------

// Neighbouring rows of results, of one or more panels of channels.
class Band {
 public:
  Band(const Plan& plan, int64_t image, int64_t band, int64_t panel, int64_t panels)
      : plan_(plan),
        conv_(*plan.convolution),
        g_(conv_.geometry),
        image_(image),
        y_(band * plan.rows),
        rows_(least(plan.rows, g_.out_height - y_)),
        channel_(panel * kPanel),
        channels_(least(panels * kPanel, g_.out_channels - channel_)),
        panels_(panels),
        repeats_(g_.out_channels / g_.in_channels),
        results_(conv_.results, channel_, channels_, panels_) {}

  void run() {
    for (int64_t x = 0; x < g_.out_width; x += plan_.pixels) {
      const int64_t pixels = least(plan_.pixels, g_.out_width - x);
      for (int64_t panel = 0; panel < panels_; ++panel) sum_panel(panel, x, pixels);
      for (int64_t row = 0; row < rows_; ++row) {
        const int64_t pixel = (image_ * g_.out_height + y_ + row) * g_.out_width + x;
        results_.write(sums_[row], pixel, pixels);
        const Epilogue& epilogue = conv_.results.epilogue;
        if (epilogue.block == nullptr) continue;
        epilogue.block(epilogue.data, pixel, pixels, channel_, channels_);
      }
    }
  }

 private:
  void sum_panel(int64_t panel, int64_t x, int64_t pixels) {
    const int64_t quad_bytes = g_.kernel_x * kQuadBytes;
    const uint8_t* weights = plan_.weights + (channel_ / kPanel + panel) * plan_.panel_bytes(g_);
    DepthwiseSums sums;
    sums.quads = quads_;
    sums.pixel_stride = g_.stride_x * kQuadBytes;
    sums.tap_stride = g_.dilation_x * kQuadBytes;
    sums.pixels = pixels;
    sums.sums_stride = panels_ * kPanel;
    for (int64_t q = 0; q < plan_.quads; ++q) {
      for (int64_t tap = 0; tap < g_.kernel_x; tap += plan_.taps) {
        sums.taps = least(plan_.taps, g_.kernel_x - tap);
        interleave_rows(panel, q, x * g_.stride_x - g_.pad_left + tap * g_.dilation_x,
                        (pixels - 1) * g_.stride_x + (sums.taps - 1) * g_.dilation_x + 1);
        for (int64_t row = 0; row < rows_; ++row) {
          sums.weights = weights + (row * plan_.quads + q) * quad_bytes + tap * kQuadBytes;
          sums.sums = sums_[row] + panel * kPanel;
          dot_depthwise_loops().sum(sums);
        }
        sums.add = true;
      }
    }
  }

  // Interleaves `columns` columns of the image from `first` on, for four rows of the kernel.
  void interleave_rows(int64_t panel, int64_t quad, int64_t first, int64_t columns) {
    const int64_t left = least(first < 0 ? -first : 0, columns);
    const int64_t end = least(columns, g_.in_width - first);
    const int64_t channel = channel_ + panel * kPanel;
    QuadRows rows;
    rows.columns = end > left ? end - left : 0;
    rows.channels = least(kPanel, g_.out_channels - channel);
    rows.first = channel % repeats_;
    rows.repeats = repeats_;
    for (int64_t j = 0; j < kQuad; ++j) {
      const int64_t y = y_ * g_.stride_y - g_.pad_top + (quad * kQuad + j) * g_.dilation_y;
      rows.strides[j] = conv_.in_column_stride;
      rows.rows[j] = plan_.row_at(image_, y) + channel / repeats_;
      if (rows.columns > 0) rows.rows[j] += (first + left) * conv_.in_column_stride;
    }
    std::memset(quads_, conv_.padding_value, static_cast<size_t>(left * kQuadBytes));
    dot_depthwise_loops().interleave(rows, quads_ + left * kQuadBytes);
    const int64_t done = left + rows.columns;
    std::memset(quads_ + done * kQuadBytes, conv_.padding_value,
                static_cast<size_t>((columns - done) * kQuadBytes));
  }

  const Plan& plan_;
  const QuantizedConvolution& conv_;
  const ConvGeometry& g_;
  const int64_t image_, y_, rows_, channel_, channels_, panels_, repeats_;
  const DotResults results_;
  alignas(64) uint8_t quads_[kMaxColumns * kQuadBytes];
  alignas(64) int32_t sums_[kMaxRows][kMaxPixels * kChunkPanels * kPanel];
};

// Computes `n` bands from `band` on, for `panels` whole panels.
void run_whole_panels(const Plan& plan, int64_t image, int64_t band, int64_t n, int64_t panel,
                      int64_t panels) {
  const QuantizedConvolution& conv = *plan.convolution;
  const ConvGeometry& g = conv.geometry;
  const int64_t channel = panel * kPanel;
  const int64_t y = band * plan.rows;
  const uint8_t* rows[2 * kBands + 2];
  for (int64_t j = 0; j < 2 * n + 2; ++j) {
    rows[j] = plan.row_at(image, y * g.stride_y - g.pad_top + j) + channel;
  }
  DepthwiseBands bands;
  bands.rows = rows;
  bands.bands = n;
  bands.n_rows = g.out_height - y;
  bands.column_stride = conv.in_column_stride;
  bands.first = -g.pad_left;
  bands.columns = g.in_width;
  bands.padding = conv.padding_value;
  bands.channels = panels * kPanel;
  bands.weights = static_cast<const uint8_t*>(conv.weights) + channel;
  bands.tap_stride = panels_of(g.out_channels) * kPanel;
  bands.start = conv.results.start + channel;
  bands.multipliers = conv.results.multipliers + channel;
  bands.requantize = conv.results.requantize;
  bands.pixels = g.out_width;
  bands.out_stride = conv.results.stride;
  bands.out_row_stride = g.out_width * bands.out_stride;
  bands.out = conv.results.bytes + (image * g.out_height + y) * bands.out_row_stride + channel;
  plan.run_bands(bands);
}

void run_items(void* data, int64_t begin, int64_t end) {
  const Plan& plan = *static_cast<const Plan*>(data);
  const ConvGeometry& g = plan.convolution->geometry;
  const int64_t groups = plan.band_groups();
  const int64_t whole = plan.run_bands != nullptr ? g.out_channels / kPanel : 0;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t image = item / plan.chunks / groups;
    const int64_t band = item / plan.chunks % groups * plan.at_once;
    const int64_t n = least(plan.at_once, plan.bands - band);
    int64_t panel = item % plan.chunks * plan.chunk_panels;
    const int64_t last = least(panel + plan.chunk_panels, panels_of(g.out_channels));
    if (panel < whole) {
      const int64_t panels = least(last, whole) - panel;
      run_whole_panels(plan, image, band, n, panel, panels);
      panel += panels;
    }
    for (; panel < last; panel += kChunkPanels) {
      const int64_t panels = least(kChunkPanels, last - panel);
      for (int64_t i = 0; i < n; ++i) Band(plan, image, band + i, panel, panels).run();
    }
  }
}

}  // namespace

size_t quantized_depthwise_scratch(const ConvGeometry& g) {
  const int64_t weights = panels_of(g.out_channels) * Plan(g, 1).panel_bytes(g);
  return static_cast<size_t>(weights + g.in_width * g.in_channels) + kCacheLine;
}

void convolve_depthwise(const QuantizedConvolution& conv, void* scratch, Workers* workers) {
  const ConvGeometry& g = conv.geometry;
  if (g.batch <= 0 || g.out_height <= 0 || g.out_width <= 0 || g.out_channels <= 0) return;
  Plan plan(g, workers == nullptr ? 1 : static_cast<int64_t>(workers->count()));
  const int64_t panels = panels_of(g.out_channels);
  plan.convolution = &conv;
  if (conv.results.bytes == nullptr) plan.run_bands = nullptr;
  plan.weights = align<uint8_t>(scratch);
  plan.padding = plan.weights + panels * plan.panel_bytes(g);
  std::memset(plan.padding, conv.padding_value, static_cast<size_t>(g.in_width * g.in_channels));
  if (plan.run_bands == nullptr || g.out_channels % kPanel != 0) {
    share_out(panels, work_of({panels, plan.panel_bytes(g)}), pack_panels, &plan, workers);
  }
  share_out(g.batch * plan.band_groups() * plan.chunks,
            work_of({g.batch, g.out_height, g.out_width, g.out_channels, g.kernel_y, g.kernel_x}),
            run_items, &plan, workers);
}

}  // namespace rushlight::engine
