#include "rushlight/backends/cpu/loops/unpack.h"

#include "rushlight/backends/cpu/kernels/dot_product.h"
#include "rushlight/backends/cpu/loops/vec_edge.h"
#include "rushlight/backends/cpu/loops/vec_int.h"
#include "rushlight/kernel/loops/half.h"

namespace rushlight::cpu::RL_ISA {
namespace {

using namespace ::rushlight::kernels::RL_ISA;

constexpr int kVectors = kPanel / kLanes;
using WordsMemory = uint32_t __attribute__((vector_size(kLanes * 4), aligned(1), may_alias));

// A scale, and what it adds for the offset of numbers that bits are made to (unpack_words).
struct Scale {
  Vec factor, offset;
};

// The terms that lie together in a vector of words, times their scale; the first `left` of them.
// A weight's bits, its sign flipped, become the highest ones of the mantissa of 2^kBits: a number
// that is 1.5 * 2^kBits too great, which takes two instructions where a conversion takes three.
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
    if (kWhole || i < left) store(out + i * kPanel, number * scale.factor + scale.offset);
  }
}

// Terms of one group, the first of which begins a quad or oct.
template <int kBits>
void unpack_group(const char* packed, const char* next, const Scale (&scale)[kVectors],
                  int64_t terms, float* out) {
  constexpr int64_t kTogether = kBits == 8 ? kQuad : kOct;
  int64_t k = 0;
  for (; k + kTogether <= terms; k += kTogether) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      unpack_words<kBits, true>(packed + v * kLanes * kQuad, scale[v], kTogether,
                                out + k * kPanel + v * kLanes);
    }
    __builtin_prefetch(next, 0, 2);
    packed += kQuadBytes;
    next += kQuadBytes;
  }
  for (int v = 0; v < kVectors && k < terms; ++v) {
    unpack_words<kBits, false>(packed + v * kLanes * kQuad, scale[v], terms - k,
                               out + k * kPanel + v * kLanes);
  }
}

template <int kBits>
void unpack(const PanelTerms& of) {
  constexpr int64_t kTogether = kBits == 8 ? kQuad : kOct;
  const int64_t end = of.first + of.terms;
  for (int64_t k = of.first; k < end;) {
    const int64_t group = k / of.group_size;
    const int64_t last = (group + 1) * of.group_size < end ? (group + 1) * of.group_size : end;
    Scale scale[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = group * kPanel + v * kLanes;
      scale[v].factor = of.halves ? load_weights(static_cast<const uint16_t*>(of.scales) + at)
                                  : load_weights(static_cast<const float*>(of.scales) + at);
      scale[v].offset = scale[v].factor * splat(-1.5f * (1 << kBits));
    }
    const int64_t done = k - of.first;
    const int64_t at = done / kTogether * kQuadBytes;
    unpack_group<kBits>(of.packed + at, of.next + at, scale, last - k, of.out + done * kPanel);
    k = last;
  }
}

// Of Half or BFloat.
template <typename T>
void unpack_reals(const PanelTerms& of) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const auto* from = reinterpret_cast<const T*>(of.packed);
  for (int64_t i = 0; i < of.terms * kPanel; i += kLine) {
    const int64_t left = of.terms * kPanel - i;
    __builtin_prefetch(of.next + i * static_cast<int64_t>(sizeof(T)), 0, 2);
    widen_all(from + i, of.out + i, static_cast<size_t>(left < kLine ? left : kLine));
  }
}

}  // namespace

const UnpackLoops unpack_loops = {unpack<8>, unpack<4>, unpack_reals<Half>, unpack_reals<BFloat>};

}  // namespace rushlight::cpu::RL_ISA
