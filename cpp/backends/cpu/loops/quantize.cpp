#include "rushlight/backends/cpu/loops/quantize.h"

#include "rushlight/backends/cpu/loops/vec_bytes.h"
#include "rushlight/backends/cpu/loops/vec_edge.h"
#include "rushlight/backends/cpu/loops/vec_int.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

void requantize(const RequantizeTile& t) {
  const RequantizeVec requantize(t.requantize);
  for (int64_t j = 0; j < t.columns; j += kLanes) {
    const IntVec start = load_int(t.start + j);
    const Vec multiplier = load(t.multipliers + j);
    const int32_t* sums = t.sums + j;
    uint8_t* out = t.out + j;
    for (int64_t i = 0; i < t.rows; ++i, sums += t.sums_step, out += t.out_step) {
      const IntVec q = requantize.apply(wrap_add(load_int(sums), start), multiplier);
      store_some_as_bytes(out, q, t.columns - j);
    }
  }
}

// kRows: each row has a scale and zero point.
template <bool kRows>
void dequantize_columns(const DequantizeTile& t, int64_t j) {
  const int64_t left = t.columns - j;
  const IntVec start = load_int(t.start + j);
  const Vec multiplier = load(t.multipliers + j);
  const Vec bias = t.bias == nullptr ? Vec{} : load(t.bias + j);
  for (int64_t i = 0; i < t.rows; ++i) {
    IntVec sum = load_int(t.sums + i * t.sums_step + j);
    Vec number;
    if constexpr (kRows) {
      const Vec zero_point = min_of(max_of(splat(t.row_scales[2 * i + 1]), Vec{}), splat(255));
      sum = wrap_add(sum, wrap_multiply(-round_even(zero_point), start));
      number = to_floats(sum) * splat(t.row_scales[2 * i]) * multiplier + bias;
    } else {
      number = to_floats(wrap_add(sum, start)) * multiplier + bias;
    }
    if (t.residual != nullptr) number += load_some(t.residual + i * t.residual_step + j, left);
    if (t.clamp) number = clamp(number, splat(t.low), splat(t.high));
    store_some(t.out + i * t.out_step + j, number, left);
  }
}

void dequantize(const DequantizeTile& t) {
  for (int64_t j = 0; j < t.columns; j += kLanes) {
    if (t.row_scales != nullptr) {
      dequantize_columns<true>(t, j);
    } else {
      dequantize_columns<false>(t, j);
    }
  }
}

void to_bytes(const float* x, int64_t n, float inverse_scale, int32_t zero_point, uint8_t* out) {
  const RequantizeVec requantize(Requantize{zero_point, 0, 255});
  const Vec factor = splat(inverse_scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store_as_bytes(out + i, requantize.round(load(x + i) * factor));
  if (i < n)
    store_some_as_bytes(out + i, requantize.round(load_first(x + i, n - i) * factor), n - i);
}

void bytes_to_floats(const uint8_t* x, int64_t n, float scale, int32_t zero_point, float* out) {
  const IntVec zero = splat_int(zero_point);
  const Vec factor = splat(scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, to_floats(load_from_bytes(x + i) - zero) * factor);
  }
  if (i < n) {
    store_first(out + i, to_floats(load_some_from_bytes(x + i, n - i) - zero) * factor, n - i);
  }
}

bool extremes(const float* x, int64_t n, float* least, float* greatest) {
  constexpr int32_t kInfinite = 0x7f800000;
  *least = *greatest = n > 0 ? x[0] : 0.0f;
  Vec low[2] = {splat(*least), splat(*least)};
  Vec high[2] = {low[0], low[0]};
  IntVec not_finite = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
#pragma GCC unroll 2
    for (int u = 0; u < 2; ++u) {
      const Vec v = load(x + i + u * kLanes);
      low[u] = min_of(v, low[u]);
      high[u] = max_of(v, high[u]);
      not_finite |= (bits(v) & kInfinite) == kInfinite;
    }
  }
  bool finite = true;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int u = 0; u < 2; ++u) {
      if (low[u][lane] < *least) *least = low[u][lane];
      if (high[u][lane] > *greatest) *greatest = high[u][lane];
    }
    finite = finite && not_finite[lane] == 0;
  }
  for (; i < n; ++i) {
    if (x[i] < *least) *least = x[i];
    if (x[i] > *greatest) *greatest = x[i];
    finite = finite && x[i] - x[i] == 0.0f;
  }
  return finite;
}

void flip(const uint8_t* x, int64_t n, uint8_t* out) {
  RL_VECTORIZE
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] ^ 0x80;
}

}  // namespace

const QuantizeLoops quantize_loops = {
    requantize, dequantize, to_bytes, bytes_to_floats, extremes, flip,
};

}  // namespace rushlight::cpu::RL_ISA
