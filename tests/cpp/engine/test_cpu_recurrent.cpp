// The CPU engine's recurrent layers, compared with cells in double precision: every kind, stacked,
// bidirectional, projected, at sizes near those of vectors and panels. The bits are the same with
// any number of threads. Also payloads that are refused.
#include "cpu_kernels.h"
#include "engine_payload.h"
#include "rushlight/engine/kernels/recurrent/recurrent.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

using Numbers = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Draws the weights in the order in which they are packed, and multiplies by them.
class Weights {
 public:
  Weights(const RecurrentSizes& sizes, uint64_t seed)
      : packed(recurrent_weights(sizes), 0.0f), bias(recurrent_bias(sizes), 0.0f), random_(seed) {}

  // [depth, columns]
  Numbers matrix(int64_t depth, int64_t columns) {
    Numbers drawn(static_cast<size_t>(depth * columns));
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        const float value = random_.real(-0.4f, 0.4f);
        *panel_element(packed.data() + at_, depth, k, j) = value;
        drawn[static_cast<size_t>(k * columns + j)] = static_cast<double>(value);
      }
    }
    at_ += panels_of(columns) * kPanel * depth;
    return drawn;
  }
  Numbers row(int64_t columns) {
    Numbers drawn(static_cast<size_t>(columns));
    for (int64_t j = 0; j < columns; ++j) {
      const float value = random_.real(-0.4f, 0.4f);
      bias.data()[bias_at_ + j] = value;
      drawn[static_cast<size_t>(j)] = static_cast<double>(value);
    }
    bias_at_ += panels_of(columns) * kPanel;
    return drawn;
  }

  Guarded<float> packed;
  Guarded<float> bias;

 private:
  Random random_;
  int64_t at_ = 0, bias_at_ = 0;
};

Numbers times(const Numbers& row, const Numbers& matrix, size_t columns) {
  Numbers result(columns, 0.0);
  for (size_t k = 0; k < row.size(); ++k) {
    for (size_t j = 0; j < columns; ++j) result[j] += row[k] * matrix[k * columns + j];
  }
  return result;
}

// One layer in one direction, for one row of the batch.
struct Layer {
  RecurrentCell kind;
  size_t units, outputs;
  Numbers input, own, projection, bias, new_bias;

  void advance(const Numbers& x, Numbers& hidden, Numbers& cell) const {
    const size_t columns = static_cast<size_t>(gates_of(kind)) * units;
    Numbers from_input = times(x, input, columns);
    Numbers state = times(hidden, own, columns);
    for (size_t j = 0; j < columns; ++j) from_input[j] += bias[j];
    Numbers next(units);
    for (size_t i = 0; i < units; ++i) {
      const auto gate = [&](size_t g) { return from_input[g * units + i] + state[g * units + i]; };
      if (kind == RecurrentCell::Lstm) {
        cell[i] = sigmoid(gate(1)) * cell[i] + sigmoid(gate(0)) * std::tanh(gate(2));
        next[i] = sigmoid(gate(3)) * std::tanh(cell[i]);
      } else if (kind == RecurrentCell::Gru) {
        const double share = sigmoid(gate(0)) * (state[2 * units + i] + new_bias[i]);
        const double fresh = std::tanh(from_input[2 * units + i] + share);
        next[i] = fresh + sigmoid(gate(1)) * (hidden[i] - fresh);
      } else {
        next[i] = kind == RecurrentCell::RnnTanh ? std::tanh(gate(0)) : std::fmax(gate(0), 0.0);
      }
    }
    hidden = outputs < units ? times(next, projection, outputs) : next;
  }
};

// The expected results: the sequence, then the last hidden states, then the last cell states.
Numbers wanted(const Recurrent& job, Weights& weights) {
  const RecurrentSizes& s = job.sizes;
  const auto outputs = static_cast<size_t>(s.outputs);
  const auto units = static_cast<size_t>(s.units);
  const int64_t rows = s.length * s.batch;
  std::vector<Numbers> sequence(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const float* x = job.x + i / s.batch * job.x_stride + i % s.batch * job.x_row;
    sequence[static_cast<size_t>(i)].assign(x, x + s.width);
  }
  Numbers hiddens, cells;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Numbers> results(sequence.size());
    for (int64_t direction = 0; direction < s.directions; ++direction) {
      Layer one = {s.cell, units, outputs, weights.matrix(s.width_of(layer), s.columns()),
                   {},     {},    {},      {}};
      one.own = weights.matrix(s.outputs, s.columns());
      if (s.projects()) one.projection = weights.matrix(s.units, s.outputs);
      one.bias = weights.row(s.columns());
      if (s.cell == RecurrentCell::Gru) one.new_bias = weights.row(s.units);
      for (int64_t b = 0; b < s.batch; ++b) {
        const int64_t at = (layer * s.directions + direction) * s.batch + b;
        Numbers hidden(job.hidden + at * s.outputs, job.hidden + (at + 1) * s.outputs);
        Numbers cell(units, 0.0);
        for (int64_t t = 0; t < s.length; ++t) {
          const int64_t time = direction == 0 ? t : s.length - 1 - t;
          const auto row = static_cast<size_t>(time * s.batch + b);
          one.advance(sequence[row], hidden, cell);
          results[row].insert(results[row].end(), hidden.begin(), hidden.end());
        }
        hiddens.insert(hiddens.end(), hidden.begin(), hidden.end());
        cells.insert(cells.end(), cell.begin(), cell.end());
      }
    }
    sequence = results;
  }
  Numbers all;
  for (const Numbers& row : sequence) all.insert(all.end(), row.begin(), row.end());
  all.insert(all.end(), hiddens.begin(), hiddens.end());
  if (s.cell == RecurrentCell::Lstm) all.insert(all.end(), cells.begin(), cells.end());
  return all;
}

void test_layers(const RecurrentSizes& sizes, bool batch_first, uint64_t seed) {
  Random random(seed);
  const std::vector<float> x = random.reals(sizes.length * sizes.batch * sizes.width, -1, 1);
  const int64_t number = sizes.layers * sizes.directions * sizes.batch;
  const std::vector<float> hidden = random.reals(number * sizes.outputs, -1, 1);
  Weights weights(sizes, seed + 1);
  Recurrent job;
  job.sizes = sizes;
  job.x = x.data();
  job.x_stride = batch_first ? sizes.width : sizes.batch * sizes.width;
  job.x_row = batch_first ? sizes.length * sizes.width : sizes.width;
  job.hidden = hidden.data();
  const Numbers expected = wanted(job, weights);
  job.weights = weights.packed.data();
  job.bias = weights.bias.data();
  job.out_row = sizes.directions * sizes.outputs;
  job.out_stride = sizes.batch * job.out_row;
  const int64_t sequence = sizes.length * job.out_stride;
  const size_t bytes = recurrent_scratch(sizes, 2);
  everywhere<float>(
      static_cast<int64_t>(expected.size()),
      [&](float* out, Workers* workers) {
        Guarded<uint8_t> scratch(static_cast<int64_t>(bytes));
        job.out = out;
        job.last_hidden = out + sequence;
        const bool has_cell = sizes.cell == RecurrentCell::Lstm;
        job.last_cell = has_cell ? job.last_hidden + number * sizes.outputs : nullptr;
        run_recurrent(job, scratch.data(), bytes, workers);
        CHECK(scratch.intact());
      },
      [&](const float* out) { CHECK(all_close(out, expected, 1e-5, "recurrent layers", 1)); });
}

void test_all_layers() {
  uint64_t seed = 1;
  for (RecurrentCell cell :
       {RecurrentCell::Lstm, RecurrentCell::Gru, RecurrentCell::RnnTanh, RecurrentCell::RnnRelu}) {
    for (int64_t units : {1, 16, 17, 40}) {
      RecurrentSizes sizes;
      sizes.cell = cell;
      sizes.units = sizes.outputs = units;
      for (int64_t batch : {1, 3, 9, 60}) {
        for (int64_t length : {1, 7, 60}) {
          if (batch * length > 600) continue;
          sizes.batch = batch;
          sizes.length = length;
          sizes.width = 1 + static_cast<int64_t>(seed % 19);
          sizes.layers = 1 + static_cast<int64_t>(seed % 3);
          sizes.directions = 1 + static_cast<int64_t>(seed / 3 % 2);
          sizes.outputs = cell == RecurrentCell::Lstm && seed % 4 == 0 ? (units + 1) / 2 : units;
          test_layers(sizes, seed % 5 < 2, seed);
          ++seed;
        }
      }
    }
  }
}

template <typename Change>
void refused(const char* reason, Change change) {
  EngineGraph graph = rnn_graph();
  change(graph);
  check_refused(graph, reason);
}

template <typename T>
void refused_field(const char* reason, int field, T value) {
  refused(reason, [&](EngineGraph& g) { g.nodes[0].operation.scalar<T>(field, value); });
}

void test_refused() {
  CHECK(EngineDelegate(rnn_graph()).loaded().ok());
  refused_field<uint8_t>("unknown kind", 0, 4);
  for (uint32_t layers : {0u, 2u, UINT32_MAX}) {
    refused_field<uint32_t>(layers == 0 ? "it has 0 layers" : "its weights", 1, layers);
  }
  refused_field<uint8_t>("must be [length, batch, width] and [length, batch, 8]", 2, 1);
  for (int64_t units : {int64_t{0}, int64_t{3}, int64_t{-1}, INT64_MAX}) {
    refused_field<int64_t>("there must be at least one of each", 3, units);
  }
  refused_field<int64_t>("layers of 5 units and 4 outputs", 3, 5);  // only an LSTM can be projected
  refused_field<int64_t>("layers of 4 units and 5 outputs", 4, 5);
  refused("of its weights are not those of 144 elements",
          [](EngineGraph& g) { g.values[1].sizes[0] = 143; });
  refused("of a hidden state are not those of 8 elements",
          [](EngineGraph& g) { g.values[3].sizes[0] = 0; });
  refused("its input has sizes (3, 10)", [](EngineGraph& g) {
    g.values[0].sizes = {3, 10};
    g.values[0].strides = {10, 1};
    g.values[0].dynamic_sizes = {0, -1};
  });
  refused("its result (2, 2, 4)", [](EngineGraph& g) { g.values[2].sizes[0] = 2; });
  refused("rows must have no gaps", [](EngineGraph& g) { g.values[0].strides = {1, 3, 6}; });
  refused("which repeat elements", [](EngineGraph& g) { g.values[0].strides[0] = 0; });
  refused("its input 1 is missing", [](EngineGraph& g) { g.nodes[0].inputs = {0, -1}; });
  refused("its output 0 is missing", [](EngineGraph& g) { g.nodes[0].outputs = {-1, 3}; });
  refused("its input 0 is int32, but must be float32",
          [](EngineGraph& g) { g.values[0].dtype = DType::Int32; });
  refused("its weights are int32, but must be",
          [](EngineGraph& g) { g.values[1].dtype = DType::Int32; });
  refused("int8 weights need scales and shares",
          [](EngineGraph& g) { g.values[1].dtype = DType::Int8; });
  refused("others have none", [](EngineGraph& g) { g.nodes[0].inputs = {0, 1, -1, -1, -1, 1, 1}; });
  refused("which only an LSTM may have", [](EngineGraph& g) { g.nodes[0].outputs = {2, -1, 3}; });
  refused("it has 8 inputs and",
          [](EngineGraph& g) { g.nodes[0].inputs = {0, 1, -1, -1, -1, -1, -1, -1}; });
  refused("which is an input or a constant", [](EngineGraph& g) { g.nodes[0].outputs = {0}; });
}

}  // namespace

int main() {
  test_all_layers();
  test_refused();
  return check_result();
}
