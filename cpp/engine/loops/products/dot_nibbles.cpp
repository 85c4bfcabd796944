#include "rushlight/engine/loops/products/dot.h"
#include "rushlight/engine/loops/vectors/dot_numbers.h"
#include "rushlight/engine/loops/vectors/dot_signed.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/engine/loops/vectors/prefetch.h"

namespace rushlight::engine::RL_ISA {
namespace {

#if defined(__AVX2__) && !defined(__AVX512VNNI__)

// Weights of 4 bits times terms fit 16 bits, and so do four such products. In other loops, bytes
// are widened before they are multiplied.
template <bool kHigh, int V>
inline void load_nibbles(const char* b, int64_t b_panel, Wide (&nibbles)[V]) {
  using Bytes = VectorOf<int8_t>::Type;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    const auto bytes = reinterpret_cast<Bytes>(plus_8<kHigh>(load_b<V>(b, b_panel, v)));
    nibbles[v] = reinterpret_cast<Wide>(bytes - 8);
  }
}

// Adds eight terms, or the first `left` of them, of row I and those after it.
template <int I, bool kWhole, int H, int V>
RL_INLINE void add_both(Accumulators<H, V>& sums, const Wide (&low)[V], const Wide (&high)[V],
                        const RowBases& a, const StrideMultiples& s, int64_t left) {
  if constexpr (I < H) {
    const char* at = a.at<I>(s);
    uint32_t first = 0, second = 0;
    if (kWhole || left > kQuad) {
      first = bytes_at(at);
      second =
          kWhole || left >= 2 * kQuad ? bytes_at(at + kQuad) : bytes_at(at + kQuad, left - kQuad);
    } else {
      first = left == kQuad ? bytes_at(at) : bytes_at(at, left);
    }
    const Wide a_low = wide(all_lanes(first)), a_high = wide(all_lanes(second));
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Wide sum = add_shorts(byte_products(a_low, low[v]), byte_products(a_high, high[v]));
      sums.rows[I][v] += add_neighbours<16>(sum);
    }
    add_both<I + 1, kWhole>(sums, low, high, a, s, left);
  }
}

template <bool kWhole, int H, int V>
RL_INLINE void add_oct(Accumulators<H, V>& sums, Accumulators<H, V>&, const char* b,
                       int64_t b_panel, const RowBases& a, const StrideMultiples& s, int64_t left) {
  Wide low[V], high[V];
  load_nibbles<false>(b, b_panel, low);
  load_nibbles<true>(b, b_panel, high);
  add_both<0, kWhole>(sums, low, high, a, s, left);
}

#else

// A row of B's eight terms as two quads of 16 times the weights: the first four are in low nibbles,
// the others in high nibbles.
template <int V, bool kHigh>
inline void load_quads(const char* b, int64_t b_panel, Quads (&quads)[V]) {
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) quads[v] = quads_at(times_16<kHigh>(load_b<V>(b, b_panel, v)));
}

template <bool kWhole, int H, int V>
RL_INLINE void add_oct(Accumulators<H, V>& low, Accumulators<H, V>& high, const char* b,
                       int64_t b_panel, RowBases a, const StrideMultiples& s, int64_t left) {
  Quads quads[V];
  load_quads<V, false>(b, b_panel, quads);
  low.add_weights(quads);
  add_terms<0, kWhole>(low, quads, a, s, left);
  if (!kWhole && left <= kQuad) return;
  load_quads<V, true>(b, b_panel, quads);
  high.add_weights(quads);
  a += kQuad;
  add_terms<0, kWhole>(high, quads, a, s, left - kQuad);
}

#endif

// The addresses from which the next terms are read.
struct Place {
  RowBases a;
  const char* b;
  const char* ahead;

  template <int H>
  static Place begin(const DotTile& t) {
    return {RowBases::begin<H>(t), static_cast<const char*>(t.b), t.ahead};
  }
};

// Sums of `octs` eights of terms. With kSplit, each sum is split into kOcts * 2 accumulators, which
// hide the latency of additions where there are few sums.
template <int H, int V, int kOcts, bool kSplit>
RL_INLINE Accumulators<H, V> sum_octs(const DotTile& t, int64_t octs, StrideMultiples& s,
                                      Place* at) {
  constexpr int kParts = kSplit ? 2 * kOcts : 1;
  Accumulators<H, V> parts[kParts];
  int64_t o = 0;
  for (; o + kOcts <= octs; o += kOcts) {
    s.hide();
    if constexpr (kSplit) {
      fetch_ahead<kOcts * kQuadBytes>(at->b);
    } else {
      // Of one eight, a line of each panel at most.
      const int64_t bytes = kOcts * t.ahead_stride;
      __builtin_prefetch(at->ahead, 0, 2);
      if (kOcts == 1 && V > kPanelVectors) __builtin_prefetch(at->ahead + bytes / 2, 0, 2);
      if (kOcts > 1) {
        for (int64_t i = 64; i < bytes; i += 64) __builtin_prefetch(at->ahead + i, 0, 2);
      }
      at->ahead += bytes;
    }
#pragma GCC unroll 4
    for (int64_t u = 0; u < kOcts; ++u) {
      add_oct<true>(parts[kSplit ? 2 * u : 0], parts[kSplit ? 2 * u + 1 : 0],
                    at->b + u * kQuadBytes, t.b_panel, at->a, s, 2 * kQuad);
      at->a += 2 * kQuad;
    }
    at->b += kOcts * kQuadBytes;
  }
  for (; o < octs; ++o) {
    add_oct<true>(parts[0], parts[0], at->b, t.b_panel, at->a, s, 2 * kQuad);
    at->a += 2 * kQuad;
    at->b += kQuadBytes;
  }
#pragma GCC unroll 8
  for (int part = 1; part < kParts; ++part) parts[0] += parts[part];
  return parts[0];
}

template <int H, int P, int kOcts, bool kSplit>
void integer_tile(const DotTile& t, void* out) {
  constexpr int V = P * kPanelVectors;
  StrideMultiples s(t.a_stride);
  Place at = Place::begin<H>(t);
  Accumulators<H, V> sums = sum_octs<H, V, kOcts, kSplit>(t, t.depth / (2 * kQuad), s, &at);
  const int64_t left = t.depth % (2 * kQuad);
  if (left != 0) add_oct<false>(sums, sums, at.b, t.b_panel, at.a, s, left);
  sums.store(static_cast<int32_t*>(out));
}

// Adds up the sums of groups times their scales.
template <int H, int V, int kOcts, bool kSplit>
RL_INLINE void sum_groups(const DotTile& t, Vec (&numbers)[H][V]) {
  StrideMultiples s(t.a_stride);
  Place at = Place::begin<H>(t);
  const int64_t octs = t.depth / (2 * kQuad) / t.groups;
  for (int64_t group = 0; group < t.groups; ++group) {
    const Accumulators<H, V> sums = sum_octs<H, V, kOcts, kSplit>(t, octs, s, &at);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Vec scale = load_scale<V>(t, group, v);
#pragma GCC unroll 8
      for (int i = 0; i < H; ++i) numbers[i][v] += to_floats(sums.value(i, v)) * scale;
    }
  }
}

template <int H, int P, int kOcts, bool kSplit>
void number_tile(const DotTile& t, void* out) {
  Vec numbers[H][P * kPanelVectors] = {};
  sum_groups<H, P * kPanelVectors, kOcts, kSplit>(t, numbers);
  store_numbers(numbers, out);
}

template <int H>
void float_tile(const DotTile& t, const DequantizeColumns& c, int64_t row) {
  constexpr int V = kGroupPanels * kPanelVectors;
  Vec numbers[H][V] = {};
  sum_groups<H, V, 4, false>(t, numbers);
  store_results<Kind::Numbers>(numbers, c, row);
}

template <int H, int P>
constexpr DotTileFn tile_or_null(bool numbers) noexcept {
  if constexpr (H > kGroupRows || P > kGroupPanels) {
    return nullptr;
  } else {
    return numbers ? number_tile<H, P, 4, false> : integer_tile<H, P, 1, false>;
  }
}
template <int H>
constexpr DotFloatsFn floats_or_null(bool numbers) noexcept {
  if constexpr (H <= kGroupRows) return numbers ? float_tile<H> : nullptr;
  return nullptr;
}
template <int H>
constexpr DotTileFn narrow(bool numbers) noexcept {
  constexpr int64_t kOcts = H == 1 ? 4 : (H == 2 ? 2 : 1);
  return numbers ? number_tile<H, 1, kOcts, true> : integer_tile<H, 1, kOcts, true>;
}

#define RL_TILES(H) {tile_or_null<H, 1>(numbers), tile_or_null<H, 2>(numbers)}

constexpr DotTiles tiles_of(bool numbers) noexcept {
  return {
      kGroupRows,
      kGroupPanels,
      {RL_TILES(1), RL_TILES(2), RL_TILES(3), RL_TILES(4), RL_TILES(5), RL_TILES(6), RL_TILES(7)},
      {narrow<1>(numbers), narrow<2>(numbers), narrow<3>(numbers), narrow<4>(numbers),
       narrow<5>(numbers), narrow<6>(numbers)},
      {},
      {floats_or_null<1>(numbers), floats_or_null<2>(numbers), floats_or_null<3>(numbers),
       floats_or_null<4>(numbers), floats_or_null<5>(numbers), floats_or_null<6>(numbers),
       floats_or_null<7>(numbers)}};
}

}  // namespace

const NibbleLoops nibble_loops = {tiles_of(false), tiles_of(true)};

}  // namespace rushlight::engine::RL_ISA
