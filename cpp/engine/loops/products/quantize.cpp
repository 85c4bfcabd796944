#include "rushlight/engine/loops/products/quantize.h"

#include "rushlight/engine/loops/vectors/bytes.h"
#include "rushlight/engine/loops/vectors/dequantize.h"
#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/engine/loops/vectors/panels.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

#if defined(__AVX512F__)

template <bool kAdds>
void requantize_two_panels(const RequantizeColumns& c, const int32_t* sums, int64_t row,
                           int64_t rows) {
  const TwoPanels<kAdds> panels(c);
  uint8_t* out = c.out + row * c.out_stride;
  const uint8_t* residual = kAdds ? c.residual + row * c.residual_stride : nullptr;
  const int64_t stride = kAdds ? c.residual_stride : 0;
  int64_t i = 0;
#pragma GCC unroll 1
  for (; i + 2 <= rows; i += 2, sums += 2 * c.sums_stride, out += 2 * c.out_stride) {
    panels.store(panels.row(sums, residual), panels.row(sums + c.sums_stride, residual + stride),
                 out, out + c.out_stride);
    residual += 2 * stride;
  }
  if (i == rows) return;
  const __m512i last = panels.row(sums, residual);
  panels.store(last, last, out, out);
}

#endif

template <bool kAdds>
void requantize_columns(const RequantizeColumns& c, const int32_t* sums, int64_t row,
                        int64_t rows) {
#if defined(__AVX512F__)
  if (c.columns == 2 * kLanes) return requantize_two_panels<kAdds>(c, sums, row, rows);
#endif
  const RequantizeVec requantize(c.requantize);
  const SumVec sum(c.sum);
  const IntVec low = splat_int(c.sum.requantize.low);
  const IntVec high = splat_int(c.sum.requantize.high);
  const int64_t sums_stride = c.sums_stride;
  const int64_t out_stride = c.out_stride;
  const int64_t residual_stride = c.residual_stride;
  for (int64_t j = 0; j < c.columns; j += kLanes) {
    const IntVec start = load_int(c.start + j);
    const Vec multiplier = load(c.multipliers + j);
    const int64_t left = c.columns - j;
    const int32_t* from = sums + j;
    const uint8_t* residual = kAdds ? c.residual + row * residual_stride + j : nullptr;
    uint8_t* out = c.out + row * out_stride + j;
    for (int64_t i = 0; i < rows; ++i, from += sums_stride, out += out_stride) {
      IntVec q = requantize.apply(wrap_add(load_int(from), start), multiplier);
      if constexpr (kAdds) {
        q = sum.apply(q, load_some_from_bytes(residual, left));
        q = q < low ? low : q;
        q = q > high ? high : q;
        residual += residual_stride;
      }
      store_some_as_bytes(out, q, left);
    }
  }
}

void requantize(const RequantizeColumns& c, const int32_t* sums, int64_t row, int64_t rows) {
  if (c.residual != nullptr) {
    requantize_columns<true>(c, sums, row, rows);
  } else {
    requantize_columns<false>(c, sums, row, rows);
  }
}

// Rows whose zero points are converted together.
constexpr int64_t kRowsAtOnce = 16;

// Scales and zero points as integers, clamped to what can be converted.
void to_integers(const float* row_scales, int64_t rows, int32_t* integers) {
  for (int64_t k = 0; k < 2 * rows; k += kLanes) {
    const Vec v = load_some(row_scales + k, 2 * rows - k);
    store_int(integers + k, round_even(min_of(max_of(v, Vec{}), splat(255))));
  }
}

template <Kind kKind>
void dequantize_rows(const DequantizeColumns& c, const char* sums, int64_t row, int64_t rows) {
  int32_t integers[2 * kRowsAtOnce];
  constexpr int64_t kOfRow = kKind == Kind::Rows || kKind == Kind::Numbers ? 2 : 0;
  const float* scales = c.row_scales + kOfRow * row;
  if constexpr (kKind == Kind::Rows) to_integers(scales, rows, integers);
  const bool is_plain = c.residual == nullptr && !c.clamp;
  const int64_t sums_stride = c.sums_stride * 4;
  const int64_t out_stride = c.out_stride;
  for (int64_t j = 0; j < c.columns; j += kLanes) {
    const Numbers<kKind> numbers(c, j);
    const int64_t left = c.columns - j;
    const char* from = sums + j * 4;
    float* out = c.out + row * out_stride + j;
    if (is_plain && left >= kLanes) {
#pragma GCC unroll 2
      for (int64_t i = 0; i < rows; ++i, from += sums_stride, out += out_stride) {
        store(out, numbers.dequantized(from, scales + kOfRow * i, integers + kOfRow * i));
      }
      continue;
    }
    for (int64_t i = 0; i < rows; ++i, from += sums_stride, out += out_stride) {
      Vec number = numbers.dequantized(from, scales + kOfRow * i, integers + kOfRow * i);
      if (c.residual != nullptr) {
        number += load_some(c.residual + (row + i) * c.residual_stride + j, left);
      }
      if (c.clamp) number = clamp(number, splat(c.low), splat(c.high));
      store_some(out, number, left);
    }
  }
}

void dequantize(const DequantizeColumns& c, const void* all_sums, int64_t row, int64_t rows) {
  const char* sums = static_cast<const char*>(all_sums);
  for (int64_t i = 0; i < rows; i += kRowsAtOnce, sums += kRowsAtOnce * c.sums_stride * 4) {
    const int64_t n = rows - i < kRowsAtOnce ? rows - i : kRowsAtOnce;
    if (c.scaled) {
      dequantize_rows<Kind::Scaled>(c, sums, row + i, n);
    } else if (c.row_scales == nullptr) {
      dequantize_rows<Kind::Start>(c, sums, row + i, n);
    } else if (c.shares == nullptr) {
      dequantize_rows<Kind::Rows>(c, sums, row + i, n);
    } else {
      dequantize_rows<Kind::Numbers>(c, sums, row + i, n);
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

// The number that a group is multiplied by, computed as by PyTorch's division of 127; groups of
// zeros get any.
float factor_of(float greatest) {
  constexpr float kLeast = 0x1p-100f;
  return 1.0f / (greatest > kLeast ? greatest : kLeast) * 127.0f;
}

void to_groups(const float* x, int64_t groups, int64_t size, int8_t* out, float* scales,
               int32_t* sums) {
  for (int64_t g = 0; g < groups; ++g, x += size, out += size) {
    Vec greatest = {};
    Vec zero = {};  // NaN if a number is not finite
    for (int64_t i = 0; i < size; i += kLanes) {
      const Vec v = load(x + i);
      greatest = max_of(max_of(v, -v), greatest);
      zero += v * Vec{};
    }
    const bool finite = sum_lanes(zero) == 0;
    const float most = finite ? max_lanes(greatest) : 0;
    const float factor = factor_of(most);
    IntVec sum = {};
    for (int64_t i = 0; i < size; i += kLanes) {
      const Vec scaled = finite ? load(x + i) * splat(factor) : Vec{};
      const IntVec q = round_even(scaled);
      sum += q;
      store_as_bytes(reinterpret_cast<uint8_t*>(out) + i, q & splat_int(255));
    }
    scales[g] = finite ? 1.0f / factor : __builtin_nanf("");
    sums[g] = static_cast<int32_t>(sum_lanes(to_floats(sum)));
  }
}

bool extremes(const float* x, int64_t n, float* least, float* greatest) {
  constexpr int64_t kChains = 4;
  Vec high[kChains] = {};
  Vec low[kChains] = {};   // negated
  Vec zero[kChains] = {};  // NaN once a number was not finite
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int64_t u = 0; u < kChains; ++u) {
      const Vec v = load(x + i + u * kLanes);
      high[u] = max_of(v, high[u]);
      low[u] = max_of(-v, low[u]);
      zero[u] += v * Vec{};
    }
  }
  for (; i < n; i += kLanes) {
    const Vec v = load_some(x + i, n - i);
    high[0] = max_of(v, high[0]);
    low[0] = max_of(-v, low[0]);
    zero[0] += v * Vec{};
  }
#pragma GCC unroll 4
  for (int64_t u = 1; u < kChains; ++u) {
    high[0] = max_of(high[u], high[0]);
    low[0] = max_of(low[u], low[0]);
    zero[0] += zero[u];
  }
  *least = -max_lanes(low[0]);
  *greatest = max_lanes(high[0]);
  return sum_lanes(zero[0]) == 0;
}

void flip(const uint8_t* x, int64_t n, uint8_t* out) {
  RL_VECTORIZE
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] ^ 0x80;
}

}  // namespace

const QuantizeLoops quantize_loops = {
    requantize, dequantize, to_bytes, bytes_to_floats, to_groups, extremes, flip,
};

}  // namespace rushlight::engine::RL_ISA
