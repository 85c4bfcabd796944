// Operators on uint8 images in a payload: results must be the bytes of the kernels, for several
// heights; and payloads that are refused.
#include <functional>

#include "cpu_kernels.h"
#include "engine_images.h"
#include "rushlight/engine/kernels/images/quantized_convolution.h"
#include "rushlight/engine/kernels/rows/quantized.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

using Graph = ImageGraph;
using Bytes = std::vector<uint8_t>;

struct Run {
  EngineTensor x, w, out;
  int64_t height;

  explicit Run(int32_t h)
      : x({1, h, 7, 20}, int64_t{h} * 140), w({5760}, 5760), out({1, 5, 4, 24}, 480), height(h) {
    Random random(static_cast<uint64_t>(h) + 1);
    for (size_t i = 0; i < x.numel(); ++i) x.data()[i] = random.real(-1.5f, 1.5f);
    for (size_t i = 0; i < w.numel(); ++i) w.data()[i] = random.real(-1.5f, 1.5f);
    // The start values of sums are made from the first bytes, so these are small.
    for (size_t i = 0; i < 128; ++i) w.data()[i] = i % 4 < 2 ? random.real(-1.2f, -1.1f) : -1.28f;
    for (size_t i = 0; i < 32; ++i) w.data()[Graph::kFirstColumn + i] = random.real(0, 1e-3f);
  }
  std::vector<EValue*> args() { return {x.value(), w.value(), out.value()}; }
};

Bytes to_bytes(EngineTensor& tensor) {
  Bytes bytes(tensor.numel());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const float q = std::nearbyint(tensor.data()[i] * (1.0f / Graph::kScale)) + 128;
    bytes[i] = static_cast<uint8_t>(std::fmin(std::fmax(q, 0), 255));
  }
  return bytes;
}

// The results of the kernels for the arguments of a run.
class Expected {
 public:
  explicit Expected(Run& run) : bytes_(to_bytes(run.w)), panels_(bytes_), height_(run.height) {
    for (uint8_t& byte : panels_) byte ^= 0x80;
    columns_ = run.w.data() + Graph::kFirstColumn;
    const Bytes image = to_bytes(run.x);
    Bytes looked = convolved(image, true, 20, 9);
    engine::QuantizedBinary sum;
    sum.a_zero_point = 128;
    sum.b_zero_point = 7;
    sum.requantize = kRequantize;
    CHECK(engine::set_sum(0.5f, 0.25f, 0.5f, &sum));
    engine::combine(sum, operands(image, looked, 1, looked), nullptr);
    engine::look_up(operands(looked, bytes_, 0, looked), nullptr);
    Bytes dense = convolved(looked, false, 24, 130);
    const Bytes other = convolved(looked, false, 24, 77);
    sum.a_zero_point = sum.b_zero_point = 100;
    CHECK(engine::set_sum(0.5f, 0.5f, 1, &sum));
    engine::combine(sum, operands(other, dense, 1, dense), nullptr);
    engine::QuantizedPooling pooling;
    pooling.geometry = geometry(24, 24, 2);
    pooling.kind = engine::Pool::Average;
    pooling.count_padding = false;
    pooling.in_zero_point = 100;
    pooling.multiplier = 1.5f;
    pooling.requantize = kRequantize;
    out.resize(static_cast<size_t>(pooling.geometry.out_height * 4 * 24));
    pooling.in = dense.data();
    pooling.out = out.data();
    engine::pool(pooling, nullptr);
  }

  Bytes out;

 private:
  static constexpr engine::Requantize kRequantize = {100, 3, 250};

  engine::ConvGeometry geometry(int64_t in, int64_t channels, int64_t stride) const {
    engine::ConvGeometry g;
    g.in_height = height_;
    g.in_width = 7;
    g.in_channels = in;
    g.out_channels = channels;
    g.kernel_y = g.kernel_x = 3;
    g.stride_y = g.stride_x = stride;
    g.pad_top = g.pad_left = 1;
    g.out_height = (height_ - 1) / stride + 1;
    g.out_width = 6 / stride + 1;
    return g;
  }

  Bytes convolved(const Bytes& image, bool depthwise, int64_t channels, uint8_t padding) const {
    engine::QuantizedConvolution conv;
    conv.geometry = geometry(20, channels, 1);
    conv.geometry.groups = depthwise ? 20 : 1;
    conv.padding_value = padding;
    conv.in = image.data();
    conv.in_column_stride = 20;
    conv.in_row_stride = 7 * 20;
    conv.weights = panels_.data();
    std::vector<int32_t> start(32);
    std::memcpy(start.data(), bytes_.data(), 128);
    Bytes results(static_cast<size_t>(height_ * 7 * channels));
    conv.results.start = start.data();
    conv.results.multipliers = columns_;
    conv.results.requantize = kRequantize;
    conv.results.bytes = results.data();
    conv.results.stride = channels;
    std::vector<char> scratch(depthwise ? engine::quantized_depthwise_scratch(conv.geometry)
                                        : engine::quantized_convolution_scratch(conv.geometry, 1));
    if (depthwise) {
      engine::convolve_depthwise(conv, scratch.data(), nullptr);
    } else {
      engine::convolve(conv, scratch.data(), nullptr);
    }
    return results;
  }

  static engine::ByteOperands operands(const Bytes& a, const Bytes& b, int64_t b_stride,
                                       Bytes& result) {
    engine::ByteOperands o;
    o.rank = 1;
    o.sizes[0] = static_cast<int64_t>(a.size());
    o.a_strides[0] = o.out_strides[0] = 1;
    o.b_strides[0] = b_stride;
    o.a = a.data();
    o.b = b.data();
    o.out = result.data();
    return o;
  }

  const Bytes bytes_;
  Bytes panels_;
  const float* columns_;
  const int64_t height_;
};

void check_run(EngineDelegate& delegate, int32_t height) {
  Run run(height);
  const Status status = delegate.run(run.args(), 2);
  if (!status.ok()) std::fprintf(stderr, "%s\n", delegate.message());
  CHECK(status.ok());
  const Expected expected(run);
  CHECK(run.out.has({1, (height - 1) / 2 + 1, 4, 24}) && run.out.rest_untouched());
  size_t wrong = 0;
  size_t varied = 0;
  for (size_t i = 0; i < expected.out.size(); ++i) {
    wrong += run.out.data()[i] != static_cast<float>(expected.out[i]);
    varied += expected.out[i] != expected.out[0];
  }
  CHECK(wrong == 0 && varied > 20);
}

void test_all_heights() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(Graph(), workers);
    if (!delegate.loaded().ok()) std::fprintf(stderr, "%s\n", delegate.message());
    CHECK(delegate.loaded().ok());
    if (!delegate.loaded().ok()) return;
    for (const int32_t height : {9, 1, 4, 9}) check_run(delegate, height);
    Run empty(0);
    CHECK(delegate.run(empty.args(), 2).code() == Code::InvalidArgument);
    check_run(delegate, 5);
  }
}

// --- what is refused ----------------------------------------------------------------------------

void refused(const std::function<void(Graph&)>& change, const char* reason) {
  Graph graph;
  change(graph);
  check_refused(graph, reason);
}

void refuse_value(Graph::Node node, size_t input, int32_t number, const char* reason) {
  refused([=](Graph& g) { g.nodes[node].inputs[input] = number; }, reason);
}

void refuse_table(Graph::Node node, Table table, const char* reason) {
  refused([=](Graph& g) { g.nodes[node].operation = table; }, reason);
}

Table bounds(int32_t zero_point = 0, int32_t low = 0, int32_t high = 255) {
  Table table;
  return table.scalar<int32_t>(0, zero_point).scalar<int32_t>(1, low).scalar<int32_t>(2, high);
}

void test_refused_convolutions() {
  for (const Graph::Node node : {Graph::kConvolveEach, Graph::kConvolve}) {
    refuse_value(node, 0, Graph::kX, "its input 0 is float32, but must be uint8");
    refuse_value(node, 1, Graph::kBytes, "its input 1 is uint8, but must be int8");
    refuse_value(node, 2, Graph::kColumns, "but must be");
    refuse_value(node, 3, -1, "its input 3 is missing");
    refuse_value(node, 3, Graph::kW, "of its multipliers are not those of");
    const uint8_t kind = node == Graph::kConvolve ? 0 : 1;
    const int64_t groups = kind == 0 ? 1 : 20;
    refuse_table(node, Graph::convolution(kind, groups, 0, bounds(256)), "within 0..255");
    refuse_table(node, Graph::convolution(kind, groups, 0, bounds(0, 9, 8)), "within 0..255");
    for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{3}, INT64_MIN, INT64_MAX}) {
      refuse_table(node, Graph::convolution(kind, bad, 0, bounds()), "do not fit its groups");
    }
    refuse_table(node, Graph::convolution(2, 1, 0, bounds()), "are dense or depthwise");
    refuse_table(node, Graph::convolution(9, 1, 0, bounds()), "of an unknown kind");
    Table epilogue;
    epilogue.scalar<uint8_t>(0, 1);
    refuse_table(node, Graph::convolution(kind, groups, 0, bounds()).ref(8, epilogue.node()),
                 "but its epilogue is for float32");
  }
  const auto adding = [](uint8_t kind, int64_t groups, uint32_t value) {
    return Graph::convolution(kind, groups, 0, bounds())
        .ref(9, residual_of(value, sum_of()).node());
  };
  refuse_table(Graph::kConvolve, adding(0, 1, Graph::kDense), "its residual has sizes");
  refused(
      [&](Graph& g) {
        g.values.push_back(g.values[Graph::kDenseRows]);
        g.values.back().sizes = g.values.back().strides = {63, 20};
        g.values.back().strides = {20, 1};
        const auto rows = static_cast<uint32_t>(g.values.size() - 1);
        g.nodes[Graph::kConvolveEach].operation = adding(1, 20, rows);
      },
      "which only dense convolutions may have");
  refuse_value(Graph::kConvolveEach, 1, Graph::kPanels, "of its weights are not those of");
  refuse_value(Graph::kConvolve, 1, Graph::kTaps, "of its weights are not those of");
  refused([](Graph& g) { g.values[Graph::kImage].strides = {1260, 63, 7, 1}; },
          "are not those of images channels last");
  refused([](Graph& g) { g.values[Graph::kImage].strides = {1260, 1, 0, 20}; },
          "which repeat elements");
  refused([](Graph& g) { g.values[Graph::kImage].strides = {1260, 1, 141, 20}; },
          "are not those of images channels last");
}

void test_refused_elementwise() {
  const auto sum = [](int32_t a_zero_point, float a_scale, float scale, uint8_t kind = 0) {
    Table table;
    table.scalar<uint8_t>(0, kind).scalar<float>(1, a_scale).scalar<int32_t>(2, a_zero_point);
    return table.scalar<float>(3, 0).scalar<float>(5, scale).ref(6, bounds().node());
  };
  refuse_table(Graph::kAdd, sum(256, 1, 1), "zero points are");
  refuse_table(Graph::kAdd, sum(-1, 1, 1), "zero points are");
  refuse_table(Graph::kAdd, sum(0, 1, 1, 3), "of an unknown kind");
  for (const float scale : {0.0f, -1.0f, 256.0f, 1e-4f, kInfinity, kNotANumber}) {
    refuse_table(Graph::kAdd, sum(0, scale, 1), "not within 2^-10 and 2^8");
  }
  refuse_table(Graph::kAdd, sum(0, kNotANumber, 1, 2), "are not positive numbers");
  refuse_table(Graph::kAdd, sum(0, 1, 0, 2), "are not positive numbers");
  refuse_value(Graph::kAdd, 1, Graph::kDense, "its second input and its result have sizes");
  refuse_value(Graph::kAdd, 1, Graph::kPanels, "but must be");
  refuse_value(Graph::kLookUp, 0, Graph::kDense, "its first input and its result have sizes");
  refuse_value(Graph::kLookUp, 1, Graph::kBytes, "of its table are not those of 256 elements");
  refused([](Graph& g) { g.values[Graph::kTable].strides = {0}; },
          "of its table are not those of 256 elements");
  refused([](Graph& g) { g.values[Graph::kSum].strides[2] = 0; }, "which repeat elements");
}

void test_refused_pools() {
  const auto pooling = [](float multiplier, int32_t zero_point, int64_t kernel) {
    Table table;
    Graph::window(table, 1, kernel, 2);
    table.scalar<uint8_t>(0, 1).scalar<int32_t>(7, zero_point).scalar<float>(8, multiplier);
    return table.ref(9, bounds().node());
  };
  for (const float bad : {-1.0f, kInfinity, kNotANumber}) {
    refuse_table(Graph::kPool, pooling(bad, 0, 3), "but must be a positive number and 0..255");
  }
  refuse_table(Graph::kPool, pooling(1, 256, 3), "but must be a positive number and 0..255");
  refuse_table(Graph::kPool, pooling(1, -1, 3), "but must be a positive number and 0..255");
  // Padding on both sides, so that the sizes fit windows of any odd size.
  refuse_table(Graph::kPool, pooling(1, 0, 2903), "which is too large for sums of 32 bits");
  refuse_value(Graph::kPool, 0, Graph::kSum, "channels and its result");
}

}  // namespace

int main() {
  on_each_isa([] { test_all_heights(); });
  test_refused_convolutions();
  test_refused_elementwise();
  test_refused_pools();
  return check_result();
}
