#include "rushlight/engine/loops/products/unpack.h"

#include "rushlight/engine/loops/vectors/edge.h"
#include "rushlight/engine/loops/vectors/integers.h"
#include "rushlight/engine/types/panels.h"
#include "rushlight/kernel/loops/half.h"

namespace rushlight::engine::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

constexpr int kVectors = kPanel / kLanes;
using WordsMemory = uint32_t __attribute__((vector_size(kLanes * 4), aligned(1), may_alias));

// A weight's bits, its sign flipped, become the highest ones of the mantissa of 2^kBits, in two
// instructions where a conversion takes three: a number that is 1.5 * 2^kBits too great.
template <int kBits>
constexpr float kTooGreat = 1.5f * (1 << kBits);

// The factor and term that make such a number a weight times its scale. With fused multiply-adds
// this is rounded only once if the scale's last two bits are zeros: then 1.5 times the scale is
// exact.
struct Scale {
#if defined(__FMA__) || defined(RL_NEON)
  Vec factor, offset;
  Scale(Vec scale, float too_great)
      : factor(reinterpret_cast<Vec>(reinterpret_cast<UnsignedVec>(scale) & ~3u)),
        offset(factor * splat(-too_great)) {}
  Vec weight(Vec number) const { return number * factor + offset; }
#else
  Vec factor, too_great;
  Scale(Vec scale, float number) : factor(scale), too_great(splat(number)) {}
  Vec weight(Vec number) const { return (number - too_great) * factor; }
#endif
};

// Unpacks the terms that share a vector of words, at most `left`, and multiplies them by their
// scale.
template <int kBits, bool kWhole>
inline void unpack_words(const char* packed, const Scale& scale, int64_t left, float* out) {
  constexpr int64_t kTogether = kBits == 8 ? kQuad : kOct;
  constexpr int kMantissa = 23;
  constexpr uint32_t kMask = ((1u << kBits) - 1) << (kMantissa - kBits);
  constexpr uint32_t kFlipped = (127u + kBits) << kMantissa | 1u << (kMantissa - 1);
  const auto words = *reinterpret_cast<const WordsMemory*>(packed);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTogether; ++i) {
    // Term i is in byte i % 4, in its upper half if i >= 4.
    const int64_t at = 8 * (i % kQuad) + (i >= kQuad ? 4 : 0);
    const int64_t by = kMantissa - kBits - at;  // to the left
    const auto moved =
        by >= 0 ? words << static_cast<uint32_t>(by) : words >> static_cast<uint32_t>(-by);
    const Vec number = reinterpret_cast<Vec>((moved & kMask) ^ kFlipped);
    if (kWhole || i < left) store(out + i * kPanel, scale.weight(number));
  }
}

// Unpacks the terms of one group for a vector of columns. The first term begins a quad or oct.
template <int kBits>
void unpack_group(const char* packed, uintptr_t next, const Scale& scale, int64_t terms,
                  float* out) {
  constexpr int64_t kTogether = kBits == 8 ? kQuad : kOct;
  int64_t k = 0;
  for (; k + kTogether <= terms; k += kTogether) {
    unpack_words<kBits, true>(packed, scale, kTogether, out + k * kPanel);
    __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
    packed += kQuadBytes;
    next += kQuadBytes;
  }
  if (k < terms) unpack_words<kBits, false>(packed, scale, terms - k, out + k * kPanel);
}

template <int kBits>
void unpack(const PanelTerms& panel) {
  constexpr int64_t kTogether = kBits == 8 ? kQuad : kOct;
  const int64_t end = panel.first + panel.terms;
  for (int64_t k = panel.first; k < end;) {
    const int64_t group = k / panel.group_size;
    const int64_t last =
        (group + 1) * panel.group_size < end ? (group + 1) * panel.group_size : end;
    const auto scale_at = [&](int64_t v) {
      const int64_t at = group * kPanel + v * kLanes;
      return Scale(load_scales(panel.scales, panel.scale_type, at), kTooGreat<kBits>);
    };
    const int64_t done = k - panel.first;
    const int64_t at = done / kTogether * kQuadBytes;
    const auto next = reinterpret_cast<uintptr_t>(panel.next) + static_cast<uintptr_t>(at);
    for (int64_t v = 0; v < kVectors; ++v) {
      unpack_group<kBits>(panel.packed + at + v * kLanes * kQuad, next, scale_at(v), last - k,
                          panel.out + done * kPanel + v * kLanes);
    }
    k = last;
  }
}

// T is Half or BFloat.
template <typename T>
void unpack_reals(const PanelTerms& panel) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const auto* from = reinterpret_cast<const T*>(panel.packed);
  auto next = reinterpret_cast<uintptr_t>(panel.next);
  for (int64_t i = 0; i < panel.terms * kPanel; i += kLine) {
    const int64_t left = panel.terms * kPanel - i;
    __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
    next += sizeof(T) * kLine;
    widen_all(from + i, panel.out + i, static_cast<size_t>(left < kLine ? left : kLine));
  }
}

}  // namespace

const UnpackLoops unpack_loops = {unpack<8>, unpack<4>, unpack_reals<Half>, unpack_reals<BFloat>};

}  // namespace rushlight::engine::RL_ISA
