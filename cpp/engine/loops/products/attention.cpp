#include "rushlight/engine/loops/products/attention.h"

#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/exp.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

constexpr float kInf = __builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;
constexpr int64_t kPanel = 2 * kLanes;

// The greatest tile whose accumulators stay in registers, with two vectors of b and one of a.
#if defined(__AVX512F__)
constexpr int64_t kHeight = 14;
#elif defined(__AVX__) || defined(__x86_64__)
constexpr int64_t kHeight = 6;
#elif defined(RL_NEON)
constexpr int64_t kHeight = 12;
#else
constexpr int64_t kHeight = 4;
#endif

// --- packing ------------------------------------------------------------------------------------

// kLanes columns of a panel from as many keys, of which `count` are there.
void pack_key_vector(const float* k, int64_t stride, int64_t count, int64_t width, float* out) {
  for (int64_t w = 0; w < width; w += kLanes) {
    const int64_t left = width - w;
    Vec square[kLanes];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) {
      square[i] = i < count ? load_some(k + i * stride + w, left) : Vec{};
    }
    transpose(square);
    if (left >= kLanes) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) store(out + (w + i) * kPanel, square[i]);
    } else {
      for (int64_t i = 0; i < left; ++i) store(out + (w + i) * kPanel, square[i]);
    }
  }
}

void pack_keys(const float* k, int64_t stride, int64_t keys, int64_t width, float* panels) {
  for (int64_t j = 0; j < keys; j += kLanes) {
    const int64_t left = keys - j;
    float* const out = panels + j / kPanel * kPanel * width + j % kPanel;
    pack_key_vector(k + j * stride, stride, left < kLanes ? left : kLanes, width, out);
  }
}

void pack_values(const float* v, int64_t stride, int64_t keys, int64_t width, float* panels) {
  for (int64_t w = 0; w < width; w += kLanes) {
    const int64_t left = width - w;
    float* const out = panels + w / kPanel * kPanel * keys + w % kPanel;
    for (int64_t j = 0; j < keys; ++j) store(out + j * kPanel, load_some(v + j * stride + w, left));
  }
}

void scale(const float* x, int64_t stride, int64_t rows, int64_t n, float factor, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) {
      store(out + i * kScoreStride + j, load_some(x + i * stride + j, n - j) * factor);
    }
  }
}

// --- products -----------------------------------------------------------------------------------

template <int H, int V>
void tile(const float* a, const float* b, int64_t b_stride, int64_t depth, float* c,
          int64_t c_stride, bool add) {
  Vec accumulators[H][V];
#pragma GCC unroll 16
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v)
      accumulators[i][v] = add ? load(c + i * c_stride + v * kLanes) : Vec{};
  }
  for (; depth > 0; --depth) {
    Vec row[V];
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int64_t i = 0; i < H; ++i) {
      const Factor factor = factor_at(a + i * kScoreStride);
#pragma GCC unroll 2
      for (int64_t v = 0; v < V; ++v)
        accumulators[i][v] = add_product(accumulators[i][v], row[v], factor);
    }
    ++a;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < H; ++i) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < V; ++v) store(c + i * c_stride + v * kLanes, accumulators[i][v]);
  }
}

using TileFn = void (*)(const float*, const float*, int64_t, int64_t, float*, int64_t, bool);

template <int H, int V>
constexpr TileFn tile_or_null() noexcept {
  if constexpr (H <= kHeight) {
    return tile<H, V>;
  } else {
    return nullptr;
  }
}

#define RL_TILES(H) {tile_or_null<H, 1>(), tile_or_null<H, 2>()}
constexpr TileFn kTiles[kMostTileRows][2] = {
    RL_TILES(1), RL_TILES(2), RL_TILES(3),  RL_TILES(4),  RL_TILES(5),  RL_TILES(6),  RL_TILES(7),
    RL_TILES(8), RL_TILES(9), RL_TILES(10), RL_TILES(11), RL_TILES(12), RL_TILES(13), RL_TILES(14)};

void multiply(const float* a, int64_t rows, const float* b, int64_t b_stride, int64_t depth,
              int64_t columns, float* c, int64_t c_stride, bool add) {
  kTiles[rows - 1][columns > kLanes ? 1 : 0](a, b, b_stride, depth, c, c_stride, add);
}

// kLanes keys at a time, whose products are transposed so that a vector holds one of each key.
void dot(const float* q, const float* k, int64_t stride, int64_t keys, int64_t width,
         float* scores) {
  for (int64_t j = 0; j < keys; j += kLanes) {
    Vec sums[kLanes] = {};
    const int64_t count = keys - j < kLanes ? keys - j : kLanes;
    for (int64_t i = 0; i < count; ++i) {
      const float* const key = k + (j + i) * stride;
      Vec even = {};
      Vec odd = {};
      int64_t w = 0;
      for (; w + kPanel <= width; w += kPanel) {
        even += load(q + w) * load(key + w);
        odd += load(q + w + kLanes) * load(key + w + kLanes);
      }
      for (; w < width; w += kLanes) even += load(q + w) * load_some(key + w, width - w);
      sums[i] = even + odd;
    }
    transpose(sums);
    Vec total = sums[0];
#pragma GCC unroll 16
    for (int64_t i = 1; i < kLanes; ++i) total += sums[i];
    store(scores + j, total);
  }
}

// --- softmax ------------------------------------------------------------------------------------

constexpr float kLeast = -3.4028234663852886e38f;

inline IntVec lane_numbers() {
  IntVec numbers;
#pragma GCC unroll 16
  for (int32_t i = 0; i < static_cast<int32_t>(kLanes); ++i) numbers[i] = i;
  return numbers;
}

void add_mask(float* scores, const float* mask, int64_t stride, int64_t n) {
  for (int64_t j = 0; j < n; j += kLanes) {
    const int64_t left = n - j;
    Vec m = splat(mask[0]);
    if (stride == 1) {
      m = load_some(mask + j, left);
    } else if (stride != 0) {
      for (int64_t i = 0; i < kLanes; ++i) m[i] = i < left ? mask[(j + i) * stride] : 0.0f;
    }
    // The lowest finite number must not become infinite: a row that it masks as a whole weighs all
    // keys alike.
    const Vec scaled = m * kLog2E;
    const IntVec is_least = (m > splat(-kInf)) & (scaled < splat(kLeast));
    store(scores + j, load(scores + j) + (is_least ? splat(kLeast) : scaled));
  }
}

// Sets the scores from `seen` on to -infinity, up to the end of the last vector.
void hide(float* scores, int64_t seen, int64_t keys) {
  int64_t j = seen / kLanes * kLanes;
  if (seen > j) {
    const IntVec is_seen = lane_numbers() < splat_int(static_cast<int32_t>(seen - j));
    const Vec v = load(scores + j);
    store(scores + j, is_seen ? v : splat(-kInf));
    j += kLanes;
  }
  for (; j < keys; j += kLanes) store(scores + j, splat(-kInf));
}

// Sets the scores before `hidden` to -infinity.
void hide_first(float* scores, int64_t hidden) {
  int64_t j = 0;
  for (; j + kLanes <= hidden; j += kLanes) store(scores + j, splat(-kInf));
  if (j >= hidden) return;
  const IntVec is_hidden = lane_numbers() < splat_int(static_cast<int32_t>(hidden - j));
  const Vec v = load(scores + j);
  store(scores + j, is_hidden ? splat(-kInf) : v);
}

void cap(float* scores, float softcap, int64_t n) {
  const float factor = 1.0f / softcap;
  for (int64_t j = 0; j < n; ++j) scores[j] = softcap * vtanh(scores[j] * factor);
}

// The greatest of the first `seen` scores, after which -infinity fills up the vector. A NaN may be
// lost here: the powers bring it back.
float greatest(const float* scores, int64_t seen) {
  Vec even = splat(-kInf);
  Vec odd = even;
  int64_t j = 0;
  for (; j + kPanel <= seen; j += kPanel) {
    even = max_of(load(scores + j), even);
    odd = max_of(load(scores + j + kLanes), odd);
  }
  for (; j < seen; j += kLanes) even = max_of(load(scores + j), even);
  return max_lanes(max_of(odd, even));
}

template <int kRound = 0>
int32_t max_lane(IntVec v) {
  if constexpr (kRound == kHalvings) {
    return v[0];
  } else {
    return max_lane<kRound + 1>(max_of_ints(v, bits(halved<kRound>(from_bits(v)))));
  }
}

// Scores become powers, times the factors of keys where there are any.
template <bool kFactors>
RL_INLINE Vec powers(float* scores, float max, const float* factors, IntVec* most) {
  const Vec p = exp2_nonpositive(load(scores) - max);
  if constexpr (kFactors) {
    // The factor of a key that is not seen may be any bits.
    const Vec product = p > Vec{} ? p * load(factors) : Vec{};
    // As integers, since NaN is then greater than all numbers.
    *most = max_of_ints(bits(product), *most);
    store(scores, product);
  } else {
    store(scores, p);
  }
  return p;
}

template <bool kFactors>
float sum_of_powers(float* scores, float max, int64_t keys, const float* factors, float* most,
                    AheadShares& ahead) {
  Vec even = {};
  Vec odd = {};
  IntVec even_most = {};
  IntVec odd_most = {};
  int64_t j = 0;
  // Each vector has the same place in the sums however many follow it.
  for (; j + kLanes < keys; j += kPanel) {
    fetch(ahead);
    even += powers<kFactors>(scores + j, max, factors + j, &even_most);
    odd += powers<kFactors>(scores + j + kLanes, max, factors + j + kLanes, &odd_most);
  }
  for (; j < keys; j += kLanes) {
    even += powers<kFactors>(scores + j, max, factors + j, &even_most);
  }
  if constexpr (kFactors) {
    *most = float_of(static_cast<uint32_t>(max_lane(max_of_ints(even_most, odd_most))));
  }
  return sum_lanes(even + odd);
}

// A row's sums so far are relative to its former maximum: factors[i] = 2^(former - new).
void rescale(const ScoreBlock& block, const float* former, const float* shift) {
  constexpr int64_t kRows = (kMostTileRows + kLanes - 1) / kLanes * kLanes;
  float factors[kRows] = {};
  for (int64_t i = 0; i < block.rows; ++i) factors[i] = former[i] - shift[i];
  for (int64_t i = 0; i < kRows; i += kLanes) {
    store(factors + i, exp2_nonpositive(load(factors + i)));
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    if (factors[i] == 1.0f) continue;
    block.sum[i] *= factors[i];
    float* const out = block.out + i * block.out_stride;
    for (int64_t w = 0; w < block.width; w += kLanes) {
      store(out + w, load(out + w) * factors[i]);
    }
  }
}

void soften(const ScoreBlock& block) {
  float former[kMostTileRows];
  float shift[kMostTileRows];
  for (int64_t i = 0; i < block.rows; ++i) {
    float* const scores = block.scores + i * kScoreStride;
    const int64_t position = (block.phase + i) / block.position_rows;
    int64_t seen = block.seen + position < block.keys ? block.seen + position : block.keys;
    if (seen < 0) seen = 0;
    if (block.softcap > 0) cap(scores, block.softcap, seen);
    if (block.mask != nullptr) {
      add_mask(scores, block.mask + i * block.mask_row, block.mask_column, seen);
    }
    hide(scores, seen, block.keys);
    const int64_t hidden = block.hidden + position;
    if (hidden > 0) hide_first(scores, hidden < seen ? hidden : seen);
    former[i] = block.first ? -kInf : block.max[i];
    const float max = greatest(scores, seen);
    block.max[i] = max > former[i] ? max : former[i];
    // 0 where no key was seen yet: -infinity minus itself is NaN.
    shift[i] = block.max[i] == -kInf ? 0.0f : block.max[i];
  }
  if (block.first) {
    for (int64_t i = 0; i < block.rows; ++i) block.sum[i] = 0;
  } else {
    rescale(block, former, shift);
  }
  AheadShares ahead = shares_of(block.ahead, block.rows * (kKeyBlock / kPanel));
  for (int64_t i = 0; i < block.rows; ++i) {
    float* const scores = block.scores + i * kScoreStride;
    block.sum[i] += block.factors == nullptr
                        ? sum_of_powers<false>(scores, shift[i], block.keys, scores, nullptr, ahead)
                        : sum_of_powers<true>(scores, shift[i], block.keys, block.factors,
                                              block.most + i, ahead);
  }
}

void normalize(const ScoreBlock& block, float* to, int64_t stride) {
  for (int64_t i = 0; i < block.rows; ++i) {
    const float factor = block.sum[i] == 0.0f ? 0.0f : 1.0f / block.sum[i];
    const float* const out = block.out + i * block.out_stride;
    float* const row = to + i * stride;
    int64_t w = 0;
    for (; w + kLanes <= block.width; w += kLanes) store(row + w, load(out + w) * factor);
    if (w < block.width) store_first(row + w, load(out + w) * factor, block.width - w);
  }
}

}  // namespace

const AttentionLoops attention_loops = {
    kHeight, kPanel, pack_keys, pack_values, scale, multiply, dot, soften, normalize,
};

}  // namespace rushlight::engine::RL_ISA
