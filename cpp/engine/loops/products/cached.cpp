#include "rushlight/engine/loops/products/cached.h"

#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/exp.h"
#include "rushlight/engine/loops/vectors/integers.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

constexpr float kInf = __builtin_inff();
constexpr float kKeyRange = 2047;  // 12 bits
constexpr int32_t kShortRange = 32767;
// Of a query's terms: times -2048, which damaged pages may have, it stays within 32 bits.
constexpr int32_t kSumRange = (1 << 20) - 1;
constexpr float kWeightRange = 32767;  // 256 sums of 128 * 32767 stay within 32 bits

// --- columns ------------------------------------------------------------------------------------

// Rows are rotated and rounded kLanes at a time, transposed: number w of row i is lane i of vector
// w. A row's result is the same in whichever lane, and beside whichever rows it is computed.
struct Columns {
  alignas(64) float numbers[kKvWidth * kLanes];

  Vec at(int64_t w) const { return load(numbers + w * kLanes); }
  void set(int64_t w, Vec v) { store(numbers + w * kLanes, v); }
};

// Of n rows, at most kLanes, filled up with zeros to `padded` numbers.
void load_columns(const float* const* rows, int64_t n, int64_t width, int64_t padded, Columns* to) {
  for (int64_t w = 0; w < padded; w += kLanes) {
    Vec square[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      square[i] = i < n && w < width ? load_some(rows[i] + w, width - w) : Vec{};
    }
    transpose(square);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) to->set(w + i, square[i]);
  }
}

// The greatest power of two that divides a width: what is rotated together.
int64_t rotated_part(int64_t width) { return width & -width; }

// The rounds of the transform over kNumbers numbers that are `apart`: those of pairs become their
// sum and their difference.
template <int64_t kNumbers>
void mix(Columns* x, int64_t width, int64_t apart) {
  for (int64_t from = 0; from < width; from += kNumbers * apart) {
    for (int64_t w = from; w < from + apart; ++w) {
      Vec v[kNumbers];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kNumbers; ++i) v[i] = x->at(w + i * apart);
#pragma GCC unroll 3
      for (int64_t half = kNumbers / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kNumbers; ++i) {
          if ((i & half) != 0) continue;
          const Vec sum = v[i] + v[i + half];
          v[i + half] = v[i] - v[i + half];
          v[i] = sum;
        }
      }
#pragma GCC unroll 8
      for (int64_t i = 0; i < kNumbers; ++i) x->set(w + i * apart, v[i]);
    }
  }
}

// Rows become sqrt(part) times their rotation.
void rotate(Columns* x, int64_t width) {
  int64_t part = rotated_part(width);
  for (; part >= 8; part /= 8) mix<8>(x, width, part / 8);
  for (; part > 1; part /= 2) mix<2>(x, width, part / 2);
}

// The greatest magnitude of each row; NaN if one of its numbers is infinite or NaN.
Vec greatest(const Columns& x, int64_t width) {
  Vec most = {};
  Vec sum = {};
  for (int64_t w = 0; w < width; ++w) {
    const Vec v = x.at(w);
    most = max_of(max_of(v, -v), most);
    sum += v * 0.0f;
  }
  return most + sum;
}

// --- integers -----------------------------------------------------------------------------------

// bfloat16 in the upper bits of lanes, rounded up, so that greatest / scale stays within the range.
Vec scales_above(Vec scale) {
  const IntVec above = (bits(scale) + splat_int(0xffff)) & splat_int(~0xffff);
  return scale == scale ? from_bits(above) : splat(__builtin_nanf(""));
}
uint16_t upper_bits(float x) { return static_cast<uint16_t>(bits_of(x) >> 16); }

// What numbers are multiplied by to become integers: 0 where there is nothing finite to divide by.
Vec inverse(Vec scale) {
  const Vec one = 1.0f / scale;
  return ((scale > Vec{}) & (one < splat(kInf))) ? one : Vec{};
}

// x * factor as an integer, ties to even, within +-range; -range where it is NaN.
IntVec to_integers(Vec x, Vec factor, float range) {
  const Vec v = min_of(max_of(nearest(x * factor), splat(-range)), splat(range));
  return __builtin_convertvector(v, IntVec);
}

// Numbers w and w + 1 of each row as a pair of int16.
IntVec pair_at(const Columns& x, int64_t w, Vec factor, float range) {
  const IntVec first = to_integers(x.at(w), factor, range);
  return (first & splat_int(0xffff)) | (to_integers(x.at(w + 1), factor, range) << 16);
}

// --- storing ------------------------------------------------------------------------------------

// At most kLanes keys.
void store_key_lanes(const KeyPlace* places, int64_t n, int64_t width, const KvPageShape& shape) {
  const float* rows[kLanes];
  uint32_t* to[kLanes];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = places[i].at;
    const int64_t panel = at / kKvBytePanel * kKvBytePanel * shape.key_width * 3 / 2;
    rows[i] = places[i].key;
    to[i] = reinterpret_cast<uint32_t*>(places[i].head + panel) + at % kKvBytePanel;
  }
  Columns x;
  load_columns(rows, n, width, shape.key_width, &x);
  rotate(&x, width);
  const Vec scale = scales_above(greatest(x, width) / kKeyRange);
  for (int64_t i = 0; i < n; ++i) {
    auto* const scales = reinterpret_cast<uint16_t*>(places[i].head + shape.key_scales);
    scales[places[i].at] = upper_bits(scale[i]);
  }
  const Vec factor = inverse(scale);
  for (int64_t w = 0; w < shape.key_width; w += kKeyTerms) {
    const IntVec last = pair_at(x, w + 6, factor, kKeyRange);
    int32_t packed[3][kLanes];
#pragma GCC unroll 3
    for (int64_t pair = 0; pair < 3; ++pair) {
      const IntVec upper = pair_at(x, w + 2 * pair, factor, kKeyRange) << 4;
      const IntVec lower = last >> static_cast<int>(4 * pair) & splat_int(0x000f000f);
      store_int(packed[pair], (upper & splat_int(~0x000f000f)) | lower);
    }
    for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 3
      for (int pair = 0; pair < 3; ++pair, to[i] += kKvBytePanel) {
        *to[i] = static_cast<uint32_t>(packed[pair][i]);
      }
    }
  }
}

// Tokens of one quad.
void store_value_quad(const float* v, int64_t stride, int64_t tokens, int64_t width,
                      const KvPageShape& shape, uint8_t* head, int64_t at) {
  auto* const scales = reinterpret_cast<uint16_t*>(head + shape.value_scales);
  Vec factors[kKvQuad];
  int32_t others = -1;  // bytes of tokens that are stored already, or will be
  for (int64_t i = 0; i < tokens; ++i) {
    Vec most = {};
    Vec sum = {};
    for (int64_t w = 0; w < width; w += kLanes) {
      const Vec some = load_some(v + i * stride + w, width - w);
      most = max_of(max_of(some, -some), most);
      sum += some * 0.0f;
    }
    const Vec scale = scales_above(splat((max_lanes(most) + sum_lanes(sum)) / 127.0f));
    scales[at + i] = upper_bits(scale[0]);
    factors[i] = inverse(scale);
    others &= ~(0xff << (at + i) % kKvQuad * 8);
  }
  auto* const to =
      reinterpret_cast<int32_t*>(head + shape.values) + at / kKvQuad * shape.value_width;
  for (int64_t w = 0; w < shape.value_width; w += kLanes) {
    IntVec quad = load_int(to + w) & splat_int(others);
    for (int64_t i = 0; i < tokens && w < width; ++i) {
      const IntVec some = to_integers(load_some(v + i * stride + w, width - w), factors[i], 127.0f);
      quad |= (some & splat_int(0xff)) << static_cast<int>((at + i) % kKvQuad * 8);
    }
    store_int(to + w, quad);
  }
}

void store_key(const float* k, int64_t width, DType dtype, uint8_t* head, int64_t at) {
  const int64_t first = at / kKvPanel * kKvPanel * width + at % kKvPanel;
  if (dtype == DType::Float16) {
    auto* const to = reinterpret_cast<uint16_t*>(head) + first;
    for (int64_t w = 0; w < width; ++w) to[w * kKvPanel] = narrow_half(k[w]).bits;
  } else {
    float* const to = reinterpret_cast<float*>(head) + first;
    for (int64_t w = 0; w < width; ++w) to[w * kKvPanel] = k[w];
  }
}

void store_value(const float* v, int64_t width, DType dtype, const KvPageShape& shape,
                 uint8_t* head, int64_t at) {
  if (dtype == DType::Float16) {
    auto* const to = reinterpret_cast<uint16_t*>(head + shape.values) + at * shape.value_width;
    for (int64_t w = 0; w < width; ++w) to[w] = narrow_half(v[w]).bits;
    for (int64_t w = width; w < shape.value_width; ++w) to[w] = 0;
  } else {
    float* const to = reinterpret_cast<float*>(head + shape.values) + at * shape.value_width;
    for (int64_t w = 0; w < width; ++w) to[w] = v[w];
    for (int64_t w = width; w < shape.value_width; ++w) to[w] = 0;
  }
}

void store_keys(const KeyPlace* places, int64_t n, int64_t width, DType dtype,
                const KvPageShape& shape) {
  if (dtype == DType::Int8) {
    for (int64_t i = 0; i < n; i += kLanes) {
      store_key_lanes(places + i, n - i < kLanes ? n - i : kLanes, width, shape);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    store_key(places[i].key, width, dtype, places[i].head, places[i].at);
  }
}

void store_values(const float* v, int64_t stride, int64_t tokens, int64_t width, DType dtype,
                  const KvPageShape& shape, uint8_t* head, int64_t at) {
  while (tokens > 0) {
    const int64_t room = dtype == DType::Int8 ? kKvQuad - at % kKvQuad : 1;
    const int64_t n = tokens < room ? tokens : room;
    if (dtype == DType::Int8) {
      store_value_quad(v, stride, n, width, shape, head, at);
    } else {
      store_value(v, width, dtype, shape, head, at);
    }
    v += n * stride;
    at += n;
    tokens -= n;
  }
}

// --- queries and weights ------------------------------------------------------------------------

void round_queries(const float* const* q, int64_t rows, int64_t width, int64_t padded, float factor,
                   int16_t* to, int64_t stride, float* scales) {
  const int32_t most = kSumRange / static_cast<int32_t>(padded);
  const auto range = static_cast<float>(most < kShortRange ? most : kShortRange);
  const auto part = static_cast<float>(rotated_part(width));
  Columns x;
  for (int64_t i = 0; i < rows; i += kLanes, to += 2 * kLanes) {
    load_columns(q + i, rows - i, width, padded, &x);
    rotate(&x, width);
    const Vec scale = greatest(x, width) / range;
    const Vec own = inverse(scale);
    for (int64_t w = 0; w < padded; w += 2) {
      const Vec pairs = from_bits(pair_at(x, w, own, range));
      store_some(reinterpret_cast<float*>(to + w * stride), pairs, rows - i);
    }
    // Both the query and the keys were multiplied by sqrt(part).
    store_some(scales + i, scale * factor / part, rows - i);
  }
}

float round_weights(const float* weights, float most, int64_t keys, int16_t* to) {
  const float scale = most / kWeightRange;
  const Vec factor = inverse(splat(scale));
  const Vec range = splat(kWeightRange);
  const auto integers = [&](const float* some) {
    const Vec v = min_of(load(some) * factor + 0.5f, range);  // NaN becomes the range
    return __builtin_convertvector(v, IntVec);
  };
  for (int64_t j = 0; j < keys; j += 2 * kLanes) {
    const IntVec second = j + kLanes < keys ? integers(weights + j + kLanes) : IntVec{};
    store_as_split_shorts(to + j, integers(weights + j), second);
  }
  return scale;
}

void widen(const uint16_t* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    store(to + i, load_weights(reinterpret_cast<const Half*>(from) + i));
  }
}

void widen_scales(const uint16_t* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) store(to + i, load_weights(from + i));
}

void join(float* max, float* sum, float* out, float part_max, float part_sum, const float* part,
          int64_t width) {
  if (part_max == -kInf && part_sum == 0.0f) return;  // it sees nothing of the part
  const float most = part_max > *max ? part_max : *max;
  const float shift = most == -kInf ? 0.0f : most;
  const float own = exp2_nonpositive(splat(*max - shift))[0];
  const float other = exp2_nonpositive(splat(part_max - shift))[0];
  *max = most;
  *sum = *sum * own + part_sum * other;
  for (int64_t w = 0; w < width; w += kLanes) {
    store(out + w, load(out + w) * own + load(part + w) * other);
  }
}

}  // namespace

const CachedRowLoops cached_row_loops = {
    store_keys, store_values, round_queries, round_weights, widen, widen_scales, join,
};

}  // namespace rushlight::engine::RL_ISA
