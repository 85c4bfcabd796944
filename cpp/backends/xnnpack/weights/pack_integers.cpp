#include "rushlight/backends/xnnpack/weights/pack_integers.h"

#include <cstring>

#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/types/view.h"

namespace rushlight::xnnpack {
namespace {

using engine::bounded_product;
using engine::kPanel;
using engine::kQuad;
using engine::kQuadBytes;
using engine::panels_of;
using engine::quads_of;

}  // namespace

int64_t dense_bytes(const Filter& f) {
  return bounded_product({f.taps, quads_of(f.inputs), kQuadBytes, panels_of(f.outputs), f.groups});
}

int64_t depthwise_bytes(const Filter& f) {
  const int64_t outputs = bounded_product({f.outputs, f.groups});
  return outputs < 0 ? -1 : bounded_product({f.taps, panels_of(outputs) * kPanel});
}

int64_t nibble_bytes(const Filter& f) {
  return bounded_product({engine::panel_quads(f.inputs, 4), kQuadBytes, panels_of(f.outputs)});
}

void pack_dense_bytes(const Filter& f, bool is_transposed, int8_t* to, int32_t* sums) {
  const auto* from = static_cast<const int8_t*>(f.data);
  const int64_t quads = f.taps * quads_of(f.inputs);
  const int64_t group = panels_of(f.outputs) * quads * kQuadBytes;
  std::memset(to, 0, static_cast<size_t>(group * f.groups));
  for (int64_t o = 0; o < f.outputs * f.groups; ++o) {
    const int64_t column = o % f.outputs;
    int8_t* panel = to + o / f.outputs * group + column / kPanel * quads * kQuadBytes;
    int32_t sum = 0;
    for (int64_t term = 0; term < f.taps * f.inputs; ++term) {
      const int64_t tap = term / f.inputs;
      const int64_t i = term % f.inputs;
      const int8_t weight = from[is_transposed ? i * f.outputs + o : o * f.taps * f.inputs + term];
      const int64_t quad = tap * quads_of(f.inputs) + i / kQuad;
      panel[quad * kQuadBytes + column % kPanel * kQuad + i % kQuad] = weight;
      sum += weight;
    }
    sums[o] = sum;
  }
}

void pack_depthwise_bytes(const Filter& f, int8_t* to, int32_t* sums) {
  const auto* from = static_cast<const int8_t*>(f.data);
  const int64_t outputs = f.outputs * f.groups;
  const int64_t row = panels_of(outputs) * kPanel;
  std::memset(to, 0, static_cast<size_t>(f.taps * row));
  for (int64_t o = 0; o < outputs; ++o) sums[o] = 0;
  for (int64_t tap = 0; tap < f.taps; ++tap) {
    std::memcpy(to + tap * row, from + tap * outputs, static_cast<size_t>(outputs));
    for (int64_t o = 0; o < outputs; ++o) sums[o] += from[tap * outputs + o];
  }
}

int32_t nibble_at(const Filter& f, int64_t output, int64_t input) {
  const int64_t at = output * f.inputs + input;
  const uint8_t pair = static_cast<const uint8_t*>(f.data)[at / 2];
  return (at % 2 == 0 ? pair & 15 : pair >> 4) - 8;
}

void pack_nibbles(const Filter& f, uint8_t* to, int32_t* sums) {
  const int64_t octs = engine::panel_quads(f.inputs, 4);
  std::memset(to, 0, static_cast<size_t>(nibble_bytes(f)));
  for (int64_t o = 0; o < f.outputs; ++o) {
    uint8_t* panel = to + o / kPanel * octs * kQuadBytes + o % kPanel * kQuad;
    int32_t sum = 0;
    for (int64_t i = 0; i < f.inputs; ++i) {
      const int32_t weight = nibble_at(f, o, i);
      const int32_t bits = (weight & 15) << (i % (2 * kQuad) < kQuad ? 0 : 4);
      panel[i / (2 * kQuad) * kQuadBytes + i % kQuad] |= static_cast<uint8_t>(bits);
      sum += weight;
    }
    sums[o] = sum;
  }
}

}  // namespace rushlight::xnnpack
