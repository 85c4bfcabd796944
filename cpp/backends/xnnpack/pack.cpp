#include "rushlight/backends/xnnpack/pack.h"

#include <cstring>

#include "rushlight/backends/cpu/kernels/product.h"
#include "rushlight/backends/cpu/view.h"

namespace rushlight::xnnpack {
namespace {

using cpu::bounded_product;
using cpu::kPanel;
using cpu::pack_panels;
using cpu::panels_of;

void fill(float* from, float* to) {
  for (; from < to; ++from) *from = 0;
}

}  // namespace

int64_t dense_floats(const Filter& f) {
  return bounded_product({f.taps, f.inputs, panels_of(f.outputs) * kPanel, f.groups});
}

int64_t depthwise_floats(const Filter& f) {
  const int64_t outputs = bounded_product({f.outputs, f.groups});
  return outputs < 0 ? -1 : bounded_product({f.taps, panels_of(outputs) * kPanel});
}

int64_t transposed_floats(const Filter& f) {
  const int64_t columns = bounded_product({f.taps, f.outputs});
  return columns < 0 ? -1 : bounded_product({f.inputs, panels_of(columns) * kPanel, f.groups});
}

int64_t bias_floats(int64_t outputs) { return panels_of(outputs) * kPanel; }

void pack_linear(const Filter& f, bool is_transposed, float* to, Workers* workers) {
  const int64_t row = is_transposed ? f.outputs : 1;
  const int64_t column = is_transposed ? 1 : f.inputs;
  pack_panels(f.data, row, column, f.inputs, f.outputs, to, workers);
}

void pack_dense(const Filter& f, float* to, Workers* workers) {
  const int64_t depth = f.taps * f.inputs;
  for (int64_t group = 0; group < f.groups; ++group) {
    pack_panels(f.data + group * f.outputs * depth, 1, depth, depth, f.outputs, to, workers);
    to += panels_of(f.outputs) * kPanel * depth;
  }
}

void pack_depthwise(const Filter& f, float* to) {
  const int64_t outputs = f.outputs * f.groups;
  const int64_t row = panels_of(outputs) * kPanel;
  for (int64_t tap = 0; tap < f.taps; ++tap, to += row) {
    std::memcpy(to, f.data + tap * outputs, static_cast<size_t>(outputs) * sizeof(float));
    fill(to + outputs, to + row);
  }
}

// Columns are (tap, output): column c reads outputs whose rows lie taps * inputs apart.
void pack_transposed(const Filter& f, float* to) {
  const int64_t columns = f.taps * f.outputs;
  for (int64_t group = 0; group < f.groups; ++group) {
    const float* from = f.data + group * f.outputs * f.taps * f.inputs;
    const int64_t floats = panels_of(columns) * kPanel * f.inputs;
    fill(to, to + floats);
    for (int64_t c = 0; c < columns; ++c) {
      const float* column = from + (c % f.outputs * f.taps + c / f.outputs) * f.inputs;
      float* panel = to + c / kPanel * f.inputs * kPanel + c % kPanel;
      for (int64_t i = 0; i < f.inputs; ++i) panel[i * kPanel] = column[i];
    }
    to += floats;
  }
}

void pack_bias(const float* bias, int64_t outputs, float* to) {
  std::memcpy(to, bias, static_cast<size_t>(outputs) * sizeof(float));
  fill(to + outputs, to + bias_floats(outputs));
}

}  // namespace rushlight::xnnpack
