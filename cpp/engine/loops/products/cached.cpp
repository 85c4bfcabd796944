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

// --- rotation -----------------------------------------------------------------------------------

// The greatest power of two that divides a width: what is rotated together.
int64_t rotated_part(int64_t width) { return width & -width; }

// One round of the transform on n elements, in an order of its own: sums and differences of the
// halves, interleaved. After log2(n) rounds this is the whole transform.
void mix(const float* x, int64_t n, float* out) {
  if (n < 2 * kLanes) {
    for (int64_t i = 0; i < n / 2; ++i) {
      out[2 * i] = x[i] + x[n / 2 + i];
      out[2 * i + 1] = x[i] - x[n / 2 + i];
    }
    return;
  }
  for (int64_t i = 0; i < n / 2; i += kLanes) {
    const Vec a = load(x + i);
    const Vec b = load(x + n / 2 + i);
    store(out + 2 * i, interleave_low(a + b, a - b));
    store(out + 2 * i + kLanes, interleave_high(a + b, a - b));
  }
}

// x becomes sqrt(part) times its rotation.
void rotate(float* x, int64_t width) {
  const int64_t part = rotated_part(width);
  float other[kKvWidth];
  for (int64_t from = 0; from < width; from += part) {
    float* one = x + from;
    float* two = other;
    for (int64_t round = 1; round < part; round *= 2) {
      mix(one, part, two);
      float* const swap = one;
      one = two;
      two = swap;
    }
    if (one == x + from) continue;
    for (int64_t i = 0; i < part; ++i) x[from + i] = one[i];
  }
}

// --- integers -----------------------------------------------------------------------------------

// The greatest magnitude of n elements, a multiple of kLanes; NaN if one is NaN.
float greatest(const float* x, int64_t n) {
  Vec most = {};
  Vec sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec v = load(x + i);
    most = max_of(max_of(v, -v), most);
    sum += v * 0.0f;  // NaN where an element is infinite or NaN
  }
  const float nan = sum_lanes(sum);
  return nan == 0.0f ? max_lanes(most) : nan + max_lanes(most);
}

// bfloat16, rounded up, so that greatest / scale stays within the range.
uint16_t scale_above(float scale) {
  const uint32_t bits = bits_of(scale);
  if (scale != scale) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0xffffu) >> 16);
}
float scale_of(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

// What floats are multiplied by to become integers: 0 where there is nothing finite to divide by.
float inverse(float scale) {
  const float one = 1.0f / scale;
  return scale > 0.0f && one < kInf ? one : 0.0f;
}

// x * factor as integers, ties to even, within +-range; -range where it is NaN.
void to_integers(const float* x, float factor, float range, int64_t n, int32_t* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec v = min_of(max_of(nearest(load(x + i) * factor), splat(-range)), splat(range));
    store_int(out + i, __builtin_convertvector(v, IntVec));
  }
}

// --- storing ------------------------------------------------------------------------------------

// A copy that is filled up with zeros to `padded`, and to whole vectors behind that.
int64_t copy_padded(const float* x, int64_t width, int64_t padded, float* to) {
  const int64_t end = (padded + kLanes - 1) / kLanes * kLanes;
  for (int64_t i = 0; i < width; ++i) to[i] = x[i];
  for (int64_t i = width; i < end; ++i) to[i] = 0;
  return end;
}

void store_key_bytes(const float* k, int64_t width, const KvPageShape& shape, uint8_t* head,
                     int64_t at) {
  float rotated[kKvWidth];
  int32_t integers[kKvWidth];
  const int64_t end = copy_padded(k, width, shape.key_width, rotated);
  rotate(rotated, width);
  const float most = greatest(rotated, end);
  const uint16_t scale = scale_above(most / kKeyRange);
  reinterpret_cast<uint16_t*>(head + shape.key_scales)[at] = scale;
  to_integers(rotated, inverse(scale_of(scale)), kKeyRange, end, integers);
  const int64_t panel = at / kKvBytePanel * kKvBytePanel * shape.key_width * 3 / 2;
  auto* to = reinterpret_cast<int16_t*>(head + panel) + at % kKvBytePanel * 2;
  for (int64_t w = 0; w < shape.key_width; w += kKeyTerms) {
    const int32_t* const key = integers + w;
    for (int64_t pair = 0; pair < 3; ++pair, to += kKvBytePanel * 2) {
      for (int64_t i = 0; i < 2; ++i) {
        to[i] = static_cast<int16_t>(key[2 * pair + i] * 16 | ((key[6 + i] >> (4 * pair)) & 15));
      }
    }
  }
}

void store_value_bytes(const float* v, int64_t width, const KvPageShape& shape, uint8_t* head,
                       int64_t at) {
  float padded[kKvWidth];
  int32_t integers[kKvWidth];
  const int64_t end = copy_padded(v, width, shape.value_width, padded);
  const uint16_t scale = scale_above(greatest(padded, end) / 127.0f);
  reinterpret_cast<uint16_t*>(head + shape.value_scales)[at] = scale;
  to_integers(padded, inverse(scale_of(scale)), 127.0f, end, integers);
  uint8_t* const to = head + shape.values + at / 4 * 4 * shape.value_width + at % 4;
  for (int64_t w = 0; w < shape.value_width; ++w) to[4 * w] = static_cast<uint8_t>(integers[w]);
}

void store_key(const float* k, int64_t width, DType dtype, const KvPageShape& shape, uint8_t* head,
               int64_t at) {
  if (dtype == DType::Int8) return store_key_bytes(k, width, shape, head, at);
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
  if (dtype == DType::Int8) return store_value_bytes(v, width, shape, head, at);
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

// --- queries and weights ------------------------------------------------------------------------

float round_query(const float* q, int64_t width, int64_t padded, float factor, int16_t* to,
                  int64_t stride) {
  float rotated[kKvWidth];
  int32_t integers[kKvWidth];
  const int64_t end = copy_padded(q, width, padded, rotated);
  rotate(rotated, width);
  const int32_t most = kSumRange / static_cast<int32_t>(padded);
  const auto range = static_cast<float>(most < kShortRange ? most : kShortRange);
  const float scale = greatest(rotated, end) / range;
  to_integers(rotated, inverse(scale), range, end, integers);
  for (int64_t i = 0; i < padded; i += 2, to += 2 * stride) {
    to[0] = static_cast<int16_t>(integers[i]);
    to[1] = static_cast<int16_t>(integers[i + 1]);
  }
  // Both the query and the keys were multiplied by sqrt(part).
  return scale * factor / static_cast<float>(rotated_part(width));
}

float round_weights(const float* weights, float most, int64_t keys, int16_t* to) {
  const float scale = most / kWeightRange;
  const float factor = inverse(scale);
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
    store_key, store_value, round_query, round_weights, widen, widen_scales, join,
};

}  // namespace rushlight::engine::RL_ISA
