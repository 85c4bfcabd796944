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

// One round of the transform: in each pair of lanes kLanes >> (kRound + 1) apart, their sum and
// their difference.
template <int kRound>
Vec mix_lanes(Vec v) {
  Vec signs;
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i) signs[i] = (i & kLanes >> (kRound + 1)) != 0 ? -1.0f : 1.0f;
  return halved<kRound>(v) + v * signs;
}

// The rounds whose pairs lie within a part.
template <int kRound = 0>
Vec rotate_lanes(Vec v, int64_t part) {
  if constexpr (kRound == kHalvings) {
    return v;
  } else {
    return rotate_lanes<kRound + 1>(part > kLanes >> (kRound + 1) ? mix_lanes<kRound>(v) : v, part);
  }
}

// x becomes sqrt(part) times its rotation; it has zeros up to a whole vector behind its width.
void rotate(float* x, int64_t width) {
  const int64_t part = rotated_part(width);
  for (int64_t apart = part / 2; apart >= kLanes; apart /= 2) {
    for (int64_t from = 0; from < width; from += 2 * apart) {
      for (int64_t i = from; i < from + apart; i += kLanes) {
        const Vec a = load(x + i);
        const Vec b = load(x + i + apart);
        store(x + i, a + b);
        store(x + i + apart, a - b);
      }
    }
  }
  for (int64_t i = 0; i < width; i += kLanes) store(x + i, rotate_lanes(load(x + i), part));
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

// x * factor as an integer, ties to even, within +-range; -range where it is NaN.
IntVec to_integers(Vec x, float factor, float range) {
  const Vec v = min_of(max_of(nearest(x * factor), splat(-range)), splat(range));
  return __builtin_convertvector(v, IntVec);
}

// The integers of n elements, a multiple of kLanes, as pairs of 16 bits.
void to_pairs(const float* x, float factor, float range, int64_t n, uint64_t* out) {
  using Longs = VectorOf<uint64_t>;
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto two = reinterpret_cast<Longs::Type>(to_integers(load(x + i), factor, range));
    *reinterpret_cast<Longs::Memory*>(out + i / 2) = (two & 0xffff) | (two >> 16 & 0xffff0000);
  }
}

// --- storing ------------------------------------------------------------------------------------

// A copy that is filled up with zeros to `padded`, and to whole vectors behind that.
int64_t copy_padded(const float* x, int64_t width, int64_t padded, float* to) {
  const int64_t end = (padded + kLanes - 1) / kLanes * kLanes;
  for (int64_t i = 0; i < end; i += kLanes) {
    store(to + i, i < width ? load_some(x + i, width - i) : Vec{});
  }
  return end;
}

void store_key_bytes(const float* k, int64_t width, const KvPageShape& shape, uint8_t* head,
                     int64_t at) {
  float rotated[kKvWidth];
  uint64_t pairs[kKvWidth / 2];
  const int64_t end = copy_padded(k, width, shape.key_width, rotated);
  rotate(rotated, width);
  const uint16_t scale = scale_above(greatest(rotated, end) / kKeyRange);
  reinterpret_cast<uint16_t*>(head + shape.key_scales)[at] = scale;
  to_pairs(rotated, inverse(scale_of(scale)), kKeyRange, end, pairs);
  const int64_t panel = at / kKvBytePanel * kKvBytePanel * shape.key_width * 3 / 2;
  auto* to = reinterpret_cast<uint32_t*>(head + panel) + at % kKvBytePanel;
  for (int64_t w = 0; w < shape.key_width; w += kKeyTerms) {
    const uint64_t* const key = pairs + w / 2;
    for (int64_t pair = 0; pair < 3; ++pair, to += kKvBytePanel) {
      *to = static_cast<uint32_t>((key[pair] << 4 & 0xfff0fff0) |
                                  (key[3] >> (4 * pair) & 0x000f000f));
    }
  }
}

void store_value_bytes(const float* v, int64_t width, const KvPageShape& shape, uint8_t* head,
                       int64_t at) {
  float padded[kKvWidth];
  uint8_t bytes[kKvWidth];
  const int64_t end = copy_padded(v, width, shape.value_width, padded);
  const uint16_t scale = scale_above(greatest(padded, end) / 127.0f);
  reinterpret_cast<uint16_t*>(head + shape.value_scales)[at] = scale;
  const float factor = inverse(scale_of(scale));
  for (int64_t w = 0; w < end; w += kLanes) {
    store_as_bytes(bytes + w, to_integers(load(padded + w), factor, 127.0f) & 255);
  }
  uint8_t* const to = head + shape.values + at / 4 * 4 * shape.value_width + at % 4;
  for (int64_t w = 0; w < shape.value_width; ++w) to[4 * w] = bytes[w];
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
  uint64_t pairs[kKvWidth / 2];
  const int64_t end = copy_padded(q, width, padded, rotated);
  rotate(rotated, width);
  const int32_t most = kSumRange / static_cast<int32_t>(padded);
  const auto range = static_cast<float>(most < kShortRange ? most : kShortRange);
  const float scale = greatest(rotated, end) / range;
  to_pairs(rotated, inverse(scale), range, end, pairs);
  for (int64_t i = 0; i < padded / 2; ++i, to += 2 * stride) {
    const auto pair = static_cast<uint32_t>(pairs[i]);
    std::memcpy(to, &pair, sizeof(pair));
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
