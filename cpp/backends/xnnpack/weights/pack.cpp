#include "rushlight/backends/xnnpack/weights/pack.h"

#include <algorithm>
#include <cstring>

#include "rushlight/engine/kernels/images/convolution.h"
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/types/view.h"
#include "rushlight/kernel/loops/half.h"

namespace rushlight::xnnpack {
namespace {

using engine::bounded_product;
using engine::kPanel;
using engine::pack_panels;
using engine::panels_of;
using kernels::plain::BFloat;
using kernels::plain::Half;

// The polynomials of Winograd's algorithm are taken at 0, ±√½, ±√2 and infinity; each row is
// divided by the product of its point's distances to the others (engine/loops/images/winograd.cpp).
constexpr double kHalfRoot = 0.70710678118654752440;
constexpr double kRoot = 1.41421356237309504880;
constexpr double kAtPoints[engine::kWinogradIn][3] = {{1, 0, 0},
                                                      {-2.0 / 3, -2.0 / 3 * kHalfRoot, -1.0 / 3},
                                                      {-2.0 / 3, 2.0 / 3 * kHalfRoot, -1.0 / 3},
                                                      {1.0 / 6, 1.0 / 6 * kRoot, 1.0 / 3},
                                                      {1.0 / 6, -1.0 / 6 * kRoot, 1.0 / 3},
                                                      {0, 0, 1}};

// The polynomial of 3 by 3 taps, which are `stride` floats apart, at two points.
float at_points(const float* taps, int64_t stride, const double* y, const double* x) {
  double sum = 0;
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = 0; b < 3; ++b) sum += y[a] * x[b] * taps[(a * 3 + b) * stride];
  }
  return static_cast<float>(sum);
}

void fill(float* from, float* to) {
  for (; from < to; ++from) *from = 0;
}

const float* floats_of(const Filter& f) { return static_cast<const float*>(f.data); }

template <typename T>
void widen_as(const uint8_t* from, int64_t n, float* to) {
  constexpr int64_t kPiece = 64;
  T piece[kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const auto size = static_cast<size_t>(n - i < kPiece ? n - i : kPiece);
    std::memcpy(piece, from + static_cast<size_t>(i) * sizeof(T), size * sizeof(T));
    kernels::plain::widen_all(piece, to + i, size);
  }
}

// Widens a few columns of a part of the depth at a time, then packs them from the cache.
void pack_widened(const Filter& f, bool is_transposed, float* to, Workers* workers) {
  constexpr int64_t kDepth = 64;
  const auto* data = static_cast<const uint8_t*>(f.data);
  const auto size = static_cast<int64_t>(element_size(f.dtype));
  share_out(workers, panels_of(f.outputs), 1, [&](int64_t begin, int64_t end) {
    float part[kDepth * kPanel];
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanel;
      const int64_t columns = std::min(f.outputs - first, kPanel);
      for (int64_t k = 0; k < f.inputs; k += kDepth) {
        const int64_t depth = std::min(f.inputs - k, kDepth);
        for (int64_t i = 0; is_transposed && i < depth; ++i) {
          widen(data + ((k + i) * f.outputs + first) * size, f.dtype, columns, part + i * kPanel);
        }
        for (int64_t j = 0; !is_transposed && j < columns; ++j) {
          widen(data + ((first + j) * f.inputs + k) * size, f.dtype, depth, part + j * kDepth);
        }
        pack_panels(part, is_transposed ? kPanel : 1, is_transposed ? 1 : kDepth, depth, columns,
                    to + (first * f.inputs + k * kPanel), nullptr);
      }
    }
  });
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

int64_t winograd_floats(const Filter& f) {
  return bounded_product({engine::kWinogradProducts, f.inputs, f.outputs});
}

int64_t bias_floats(int64_t outputs) { return panels_of(outputs) * kPanel; }

void widen(const void* from, DType dtype, int64_t n, float* to) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  if (dtype == DType::Float16) return widen_as<Half>(bytes, n, to);
  if (dtype == DType::BFloat16) return widen_as<BFloat>(bytes, n, to);
  std::memcpy(to, bytes, static_cast<size_t>(n) * sizeof(float));
}

void pack_linear(const Filter& f, bool is_transposed, float* to, Workers* workers) {
  if (f.dtype != DType::Float32) return pack_widened(f, is_transposed, to, workers);
  const int64_t row = is_transposed ? f.outputs : 1;
  const int64_t column = is_transposed ? 1 : f.inputs;
  pack_panels(floats_of(f), row, column, f.inputs, f.outputs, to, workers);
}

void pack_dense(const Filter& f, float* to, Workers* workers) {
  const int64_t depth = f.taps * f.inputs;
  for (int64_t group = 0; group < f.groups; ++group) {
    pack_panels(floats_of(f) + group * f.outputs * depth, 1, depth, depth, f.outputs, to, workers);
    to += panels_of(f.outputs) * kPanel * depth;
  }
}

void pack_depthwise(const Filter& f, float* to) {
  const int64_t outputs = f.outputs * f.groups;
  const int64_t row = panels_of(outputs) * kPanel;
  for (int64_t tap = 0; tap < f.taps; ++tap, to += row) {
    std::memcpy(to, floats_of(f) + tap * outputs, static_cast<size_t>(outputs) * sizeof(float));
    fill(to + outputs, to + row);
  }
}

// Columns are (tap, output): column c reads outputs whose rows lie taps * inputs apart.
void pack_transposed(const Filter& f, float* to) {
  const int64_t columns = f.taps * f.outputs;
  for (int64_t group = 0; group < f.groups; ++group) {
    const float* from = floats_of(f) + group * f.outputs * f.taps * f.inputs;
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

void pack_winograd(const Filter& f, float* to) {
  for (int64_t product = 0; product < engine::kWinogradProducts; ++product) {
    const double* y = kAtPoints[product / engine::kWinogradIn];
    const double* x = kAtPoints[product % engine::kWinogradIn];
    float* panels = to + product * f.inputs * f.outputs;
    for (int64_t o = 0; o < f.outputs; ++o) {
      const float* taps = floats_of(f) + o * f.taps * f.inputs;
      float* column = panels + o / kPanel * f.inputs * kPanel + o % kPanel;
      for (int64_t i = 0; i < f.inputs; ++i) {
        column[i * kPanel] = at_points(taps + i, f.inputs, y, x);
      }
    }
  }
}

void pack_bias(const float* bias, int64_t outputs, float* to) {
  std::memcpy(to, bias, static_cast<size_t>(outputs) * sizeof(float));
  fill(to + outputs, to + bias_floats(outputs));
}

}  // namespace rushlight::xnnpack
