#include "rushlight/engine/loops/recurrent/cells.h"

#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

void lstm(const CellRow& r) {
  const int64_t n = r.units;
  const float* input = r.input;
  const float* own = r.own;
  float* cell = r.cell;
  float* out = r.out;
  RL_VECTORIZE
  for (int64_t i = 0; i < n; ++i) {
    const float in = vsigmoid(input[i] + own[i]);
    const float forget = vsigmoid(input[n + i] + own[n + i]);
    const float fresh = vtanh(input[2 * n + i] + own[2 * n + i]);
    const float show = vsigmoid(input[3 * n + i] + own[3 * n + i]);
    const float next = forget * cell[i] + in * fresh;
    cell[i] = next;
    out[i] = show * vtanh(next);
  }
}

template <bool kBias>
void gru_row(const CellRow& r) {
  const int64_t n = r.units;
  const float* input = r.input;
  const float* own = r.own;
  const float* bias = r.bias;
  const float* hidden = r.hidden;
  float* out = r.out;
  RL_VECTORIZE
  for (int64_t i = 0; i < n; ++i) {
    const float reset = vsigmoid(input[i] + own[i]);
    const float update = vsigmoid(input[n + i] + own[n + i]);
    const float share = kBias ? own[2 * n + i] + bias[i] : own[2 * n + i];
    const float fresh = vtanh(input[2 * n + i] + reset * share);
    out[i] = fresh + update * (hidden[i] - fresh);
  }
}

void gru(const CellRow& r) { r.bias != nullptr ? gru_row<true>(r) : gru_row<false>(r); }

void rnn_tanh(const CellRow& r) {
  const float* input = r.input;
  const float* own = r.own;
  float* out = r.out;
  RL_VECTORIZE
  for (int64_t i = 0; i < r.units; ++i) out[i] = vtanh(input[i] + own[i]);
}

void rnn_relu(const CellRow& r) {
  const float* input = r.input;
  const float* own = r.own;
  float* out = r.out;
  RL_VECTORIZE
  for (int64_t i = 0; i < r.units; ++i) {
    const float sum = input[i] + own[i];
    out[i] = sum < 0.0f ? 0.0f : sum;  // NaN stays NaN
  }
}

}  // namespace

const CellLoops cell_loops = {{lstm, gru, rnn_tanh, rnn_relu}};

}  // namespace rushlight::engine::RL_ISA
