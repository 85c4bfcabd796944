#include "rushlight/engine/kernels/recurrent/recurrent.h"

#include <cstring>

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/kernels/rows/quantize.h"
#include "rushlight/engine/loops/recurrent/cells.h"
#include "rushlight/engine/types/view.h"

namespace rushlight::engine {
namespace {

// Rows of the sequence whose shares of the gates are computed at once: enough that a product reads
// its weights for little, few enough that the shares stay in the second-level cache.
constexpr int64_t kRowsAtOnce = 56;
constexpr int64_t kGateWork = 16;  // multiplications that take as long as a gate's activation

int64_t whole_panels(int64_t columns) { return panels_of(columns) * kPanel; }

// Elements of a packed matrix; -1 if they are too many.
int64_t packed_size(PanelType type, int64_t depth, int64_t columns) {
  if (type == PanelType::Int8) {
    return bounded_product({panels_of(columns), quads_of(depth), kQuadBytes});
  }
  return bounded_product({panels_of(columns), depth, kPanel});
}

// first + (layers - 1) * later, for all directions; -1 if one of them or the whole is too large.
int64_t of_all_layers(const RecurrentSizes& s, int64_t first, int64_t later) {
  if (first < 0 || later < 0) return -1;
  const int64_t rest = bounded_product({s.directions, s.layers - 1, later});
  return rest < 0 ? -1 : s.directions * first + rest;
}

int64_t layer_weights(const RecurrentSizes& s, int64_t layer) {
  const int64_t input = packed_size(s.type, s.width_of(layer), s.columns());
  const int64_t hidden = packed_size(s.type, s.outputs, s.columns());
  const int64_t projection = s.projects() ? packed_size(s.type, s.units, s.outputs) : 0;
  return input < 0 || hidden < 0 || projection < 0 ? -1 : input + hidden + projection;
}

int64_t iterations_at_once(const RecurrentSizes& s) {
  const int64_t count = s.batch >= kRowsAtOnce ? 1 : kRowsAtOnce / (s.batch > 0 ? s.batch : 1);
  return least(count, s.length);
}

// The sequence between two layers lies in the result, which one direction overwrites behind itself.
bool needs_sequence(const RecurrentSizes& s) { return s.layers > 1 && s.directions > 1; }

// Where everything lies in the scratch memory, in bytes.
struct Places {
  size_t input_share, own, unprojected, states[2], cell, sequence, bytes, row_scales, product;

  explicit Places(const RecurrentSizes& s) {
    const int64_t rows = iterations_at_once(s) * s.batch;
    const bool is_int8 = s.type == PanelType::Int8;
    int64_t widest = s.width_of(0) > s.width_of(1) ? s.width_of(0) : s.width_of(1);
    if (s.units > widest) widest = s.units;
    input_share = take(rows * s.columns() * 4);
    own = take(s.batch * s.columns() * 4);
    unprojected = take(s.projects() ? s.batch * s.units * 4 : 0);
    for (size_t& state : states) state = take(s.batch * s.outputs * 4);
    cell = take(s.batch * s.units * 4);
    sequence = take(needs_sequence(s) ? s.length * s.batch * s.directions * s.outputs * 4 : 0);
    // An iteration quantises the rows of the whole batch.
    const int64_t quantized = rows > s.batch ? rows : s.batch;
    bytes = take(is_int8 ? quantized * widest + kQuadBytes : 0);
    row_scales = take(is_int8 ? quantized * 2 * 4 : 0);
    product = end_;
  }

 private:
  size_t take(int64_t n) {
    const size_t at = end_;
    end_ += static_cast<size_t>(round_up(n, kCacheLine));
    return at;
  }
  size_t end_ = 0;
};

// A matrix among the packed weights.
struct Matrix {
  const void* panels = nullptr;
  const float* scales = nullptr;
  const int32_t* shares = nullptr;
  int64_t depth = 0, columns = 0;
};

// The rows of a sequence: row i of iteration t at data + t * stride + i * row.
struct SequenceRows {
  float* data = nullptr;
  int64_t stride = 0, row = 0;

  float* at(int64_t t) const { return data + t * stride; }
};

class Layers {
 public:
  Layers(const Recurrent& job, void* scratch, size_t scratch_size, Workers* workers)
      : job_(job),
        s_(job.sizes),
        places_(s_),
        scratch_(static_cast<uint8_t*>(scratch)),
        product_size_(scratch_size - places_.product),
        workers_(workers),
        weights_(static_cast<const uint8_t*>(job.weights)),
        scales_(job.scales),
        shares_(job.shares),
        bias_(job.bias) {}

  void run() {
    // The first layer only reads it.
    SequenceRows in = {const_cast<float*>(job_.x), job_.x_stride, job_.x_row};
    const SequenceRows result = {job_.out, job_.out_stride, job_.out_row};
    const int64_t row = s_.directions * s_.outputs;
    const SequenceRows between = {at<float>(places_.sequence), s_.batch * row, row};
    for (int64_t layer = 0; layer < s_.layers; ++layer) {
      const bool is_between = needs_sequence(s_) && (s_.layers - layer) % 2 == 0;
      const SequenceRows out = is_between ? between : result;
      for (int64_t direction = 0; direction < s_.directions; ++direction) {
        run_layer(layer, direction, in, out);
      }
      in = out;
    }
  }

 private:
  template <typename T>
  T* at(size_t place) const {
    return reinterpret_cast<T*>(scratch_ + place);
  }
  float* state(int64_t number) const { return at<float>(places_.states[number % 2]); }

  Matrix next_matrix(int64_t depth, int64_t columns) {
    Matrix matrix = {weights_, scales_, shares_, depth, columns};
    const bool is_half = s_.type == PanelType::BFloat16 || s_.type == PanelType::Float16;
    const int64_t element = s_.type == PanelType::Int8 ? 1 : (is_half ? 2 : 4);
    weights_ += packed_size(s_.type, depth, columns) * element;
    if (s_.type == PanelType::Int8) {
      scales_ += whole_panels(columns);
      shares_ += whole_panels(columns);
    }
    return matrix;
  }
  const float* next_bias(int64_t columns) {
    const float* bias = bias_;
    if (bias_ != nullptr) bias_ += whole_panels(columns);
    return bias;
  }

  // One layer in one direction.
  void run_layer(int64_t layer, int64_t direction, const SequenceRows& in, SequenceRows out) {
    const int64_t width = s_.width_of(layer);
    const Matrix input = next_matrix(width, s_.columns());
    hidden_weights_ = next_matrix(s_.outputs, s_.columns());
    if (s_.projects()) projection_ = next_matrix(s_.units, s_.outputs);
    const float* bias = next_bias(s_.columns());
    new_bias_ = s_.cell == RecurrentCell::Gru ? next_bias(s_.units) : nullptr;
    const int64_t number = layer * s_.directions + direction;
    out.data += direction * s_.outputs;
    start(number);
    const int64_t most = iterations_at_once(s_);
    for (int64_t done = 0; done < s_.length; done += most) {
      const int64_t count = least(most, s_.length - done);
      const int64_t first = direction == 0 ? done : s_.length - done - count;
      share_input(input, bias, {in.at(first), in.stride, in.row}, count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t of_these = direction == 0 ? i : count - 1 - i;
        iterate(done + i, of_these, out.at(first + of_these), out.row);
      }
    }
    store_last(number);
  }

  void start(int64_t number) const {
    const size_t hidden = static_cast<size_t>(s_.batch * s_.outputs);
    const size_t cell = static_cast<size_t>(s_.batch * s_.units);
    load(job_.hidden, number, hidden, state(0));
    if (s_.cell == RecurrentCell::Lstm) load(job_.cell, number, cell, at<float>(places_.cell));
  }
  static void load(const float* from, int64_t number, size_t n, float* to) {
    if (from == nullptr) {
      std::memset(to, 0, n * sizeof(float));
    } else {
      std::memcpy(to, from + number * static_cast<int64_t>(n), n * sizeof(float));
    }
  }
  void store_last(int64_t number) const {
    const int64_t hidden = s_.batch * s_.outputs;
    const int64_t cell = s_.batch * s_.units;
    if (job_.last_hidden != nullptr) {
      std::memcpy(job_.last_hidden + number * hidden, state(s_.length),
                  static_cast<size_t>(hidden) * sizeof(float));
    }
    if (job_.last_cell != nullptr) {
      std::memcpy(job_.last_cell + number * cell, at<float>(places_.cell),
                  static_cast<size_t>(cell) * sizeof(float));
    }
  }

  // The input's share of the gates of `count` iterations.
  void share_input(const Matrix& matrix, const float* bias, const SequenceRows& in,
                   int64_t count) const {
    float* input_share = at<float>(places_.input_share);
    const int64_t columns = s_.columns();
    if (s_.batch == 1)
      return multiply_rows(matrix, bias, in.data, in.stride, count, input_share, columns);
    if (in.stride == s_.batch * in.row) {
      return multiply_rows(matrix, bias, in.data, in.row, count * s_.batch, input_share, columns);
    }
    if (count < s_.batch) {
      for (int64_t t = 0; t < count; ++t) {
        multiply_rows(matrix, bias, in.at(t), in.row, s_.batch,
                      input_share + t * s_.batch * columns, columns);
      }
      return;
    }
    for (int64_t b = 0; b < s_.batch; ++b) {
      multiply_rows(matrix, bias, in.data + b * in.row, in.stride, count, input_share + b * columns,
                    s_.batch * columns);
    }
  }

  // Iteration `number` in the order of computation; its shares are those of `of_these`.
  void iterate(int64_t number, int64_t of_these, float* out, int64_t out_row) const {
    const float* before = state(number);
    float* after = state(number + 1);
    float* own = at<float>(places_.own);
    multiply_rows(hidden_weights_, nullptr, before, s_.outputs, s_.batch, own, s_.columns());
    const float* input_share = at<float>(places_.input_share) + of_these * s_.batch * s_.columns();
    float* fresh = s_.projects() ? at<float>(places_.unprojected) : after;
    float* cells = at<float>(places_.cell);
    const auto run_cell = cell_loops().row[static_cast<size_t>(s_.cell)];
    const auto rows = [&](int64_t begin, int64_t end) {
      CellRow row;
      row.units = s_.units;
      row.bias = new_bias_;
      for (int64_t i = begin; i < end; ++i) {
        row.input = input_share + i * s_.columns();
        row.own = own + i * s_.columns();
        row.hidden = before + i * s_.outputs;
        row.cell = cells + i * s_.units;
        row.out = fresh + i * s_.units;
        run_cell(row);
      }
    };
    rushlight::share_out(workers_for(work_of({s_.batch, s_.columns(), kGateWork}), workers_),
                         s_.batch, 1, rows);
    if (s_.projects()) {
      multiply_rows(projection_, nullptr, fresh, s_.units, s_.batch, after, s_.outputs);
    }
    for (int64_t i = 0; i < s_.batch; ++i) {
      std::memcpy(out + i * out_row, after + i * s_.outputs,
                  static_cast<size_t>(s_.outputs) * sizeof(float));
    }
  }

  void multiply_rows(const Matrix& matrix, const float* bias, const float* a, int64_t a_stride,
                     int64_t rows, float* c, int64_t c_stride) const {
    if (s_.type == PanelType::Int8) {
      return multiply_bytes(matrix, bias, a, a_stride, rows, c, c_stride);
    }
    Product product;
    product.rows = rows;
    product.depth = matrix.depth;
    product.columns = matrix.columns;
    product.a = a;
    product.a_stride = a_stride;
    product.panels = matrix.panels;
    product.type = s_.type;
    product.c = c;
    product.c_stride = c_stride;
    product.epilogue.bias = bias;
    multiply(product, at<void>(places_.product), product_size_, workers_);
  }

  // Rows are quantised by what they hold.
  void multiply_bytes(const Matrix& matrix, const float* bias, const float* a, int64_t a_stride,
                      int64_t rows, float* c, int64_t c_stride) const {
    QuantizeRows quantize;
    quantize.rows = rows;
    quantize.width = matrix.depth;
    quantize.in = a;
    quantize.in_stride = a_stride;
    quantize.out = at<uint8_t>(places_.bytes);
    quantize.out_stride = matrix.depth;
    quantize.scales = at<float>(places_.row_scales);
    quantize_rows(quantize, workers_);
    QuantizedProduct product;
    product.rows = rows;
    product.depth = matrix.depth;
    product.columns = matrix.columns;
    product.a = quantize.out;
    product.a_stride = quantize.out_stride;
    product.panels = matrix.panels;
    product.results.multipliers = matrix.scales;
    product.results.start = matrix.shares;
    product.results.row_scales = quantize.scales;
    product.results.floats = c;
    product.results.stride = c_stride;
    product.results.epilogue.bias = bias;
    multiply(product, workers_);
  }

  const Recurrent& job_;
  const RecurrentSizes& s_;
  const Places places_;
  uint8_t* const scratch_;
  const size_t product_size_;
  Workers* const workers_;
  // What follows in memory.
  const uint8_t* weights_;
  const float* scales_;
  const int32_t* shares_;
  const float* bias_;
  // Of the layer that runs.
  Matrix hidden_weights_;
  Matrix projection_;
  const float* new_bias_ = nullptr;
};

Product product_of(const RecurrentSizes& s, int64_t rows, int64_t depth, int64_t columns) {
  Product product;
  product.rows = rows;
  product.depth = depth;
  product.columns = columns;
  product.type = s.type;
  return product;
}

}  // namespace

int64_t recurrent_weights(const RecurrentSizes& s) {
  return of_all_layers(s, layer_weights(s, 0), layer_weights(s, 1));
}

int64_t recurrent_bias(const RecurrentSizes& s) {
  int64_t columns = whole_panels(s.columns());
  if (s.cell == RecurrentCell::Gru) columns += whole_panels(s.units);
  return of_all_layers(s, columns, columns);
}

int64_t recurrent_scales(const RecurrentSizes& s) {
  const int64_t columns =
      2 * whole_panels(s.columns()) + (s.projects() ? whole_panels(s.outputs) : 0);
  return of_all_layers(s, columns, columns);
}

size_t recurrent_scratch(const RecurrentSizes& s, size_t threads) {
  const size_t own = Places(s).product;
  if (s.type == PanelType::Int8) return own;
  const int64_t rows = iterations_at_once(s) * s.batch;
  size_t most = 0;
  for (const Product& product : {product_of(s, rows, s.width_of(0), s.columns()),
                                 product_of(s, rows, s.width_of(1), s.columns()),
                                 product_of(s, s.batch, s.outputs, s.columns()),
                                 product_of(s, s.batch, s.units, s.outputs)}) {
    const size_t wanted = product_scratch(product, threads);
    if (wanted > most) most = wanted;
  }
  return own + most;
}

void run_recurrent(const Recurrent& job, void* scratch, size_t scratch_size, Workers* workers) {
  if (job.sizes.batch > 0) Layers(job, scratch, scratch_size, workers).run();
}

}  // namespace rushlight::engine
