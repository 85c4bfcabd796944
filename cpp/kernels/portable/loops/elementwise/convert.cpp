#include "rushlight/kernels/portable/loops/elementwise/convert.h"

#include <type_traits>

#include "rushlight/kernel/loops/half.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// A byte that holds a bool; any nonzero byte is true.
struct Truth {
  uint8_t byte;
};

// Converts one element from its form in memory to a C++ number.
template <typename T>
T load(T x) {
  return x;
}
// A selective build may have none of these types.
[[maybe_unused]] float load(Half x) { return widen(x); }
[[maybe_unused]] float load(BFloat x) { return widen(x); }
[[maybe_unused]] uint8_t load(Truth x) { return x.byte != 0; }

template <typename To>
struct Store {
  template <typename From>
  static To from(From x) {
    return static_cast<To>(x);
  }
};
template <>
struct Store<Truth> {
  template <typename From>
  static Truth from(From x) {
    return {static_cast<uint8_t>(x != 0)};
  }
};
template <>
struct Store<Half> {
  template <typename From>
  static Half from(From x) {
    return narrow_half(static_cast<float>(x));
  }
};
template <>
struct Store<BFloat> {
  template <typename From>
  static BFloat from(From x) {
    return narrow_bfloat(static_cast<float>(x));
  }
};

// A floating number is converted to a narrow unsigned type by way of a wider signed one, so that
// -1.0 becomes 255 as in torch and does not depend on the processor.
#define RL_STORE_VIA(To, Via)                                                 \
  template <>                                                                 \
  struct Store<To> {                                                          \
    static To from(float x) { return static_cast<To>(static_cast<Via>(x)); }  \
    static To from(double x) { return static_cast<To>(static_cast<Via>(x)); } \
    template <typename From>                                                  \
    static To from(From x) {                                                  \
      return static_cast<To>(x);                                              \
    }                                                                         \
  };
RL_STORE_VIA(uint8_t, int32_t)
RL_STORE_VIA(int8_t, int32_t)
RL_STORE_VIA(int16_t, int32_t)
RL_STORE_VIA(uint16_t, int32_t)
RL_STORE_VIA(uint32_t, int64_t)
RL_STORE_VIA(uint64_t, int64_t)
#undef RL_STORE_VIA

template <typename From, typename To>
void convert_by_float(const void* in, void* out, size_t n);

template <typename From, typename To>
void convert(const void* in, void* out, size_t n) {
#if defined(__F16C__) || defined(RL_NEON)
  constexpr bool kHalf = std::is_same<From, Half>::value || std::is_same<To, Half>::value;
  if constexpr (kHalf) return convert_by_float<From, To>(in, out, n);
#endif
  const From* x = static_cast<const From*>(in);
  To* y = static_cast<To*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Store<To>::from(load(x[i]));
}

#if defined(__F16C__) || defined(RL_NEON)
// Uses the processor's own conversions, which are to and from float; the compiler does not use them
// for the loop above.
template <typename From, typename To>
void convert_by_float(const void* in, void* out, size_t n) {
  constexpr size_t kPiece = 256;
  float piece[kPiece];
  for (size_t done = 0; done < n; done += kPiece) {
    const size_t count = n - done < kPiece ? n - done : kPiece;
    convert<From, float>(static_cast<const From*>(in) + done, piece, count);
    convert<float, To>(piece, static_cast<To*>(out) + done, count);
  }
}

template <>
void convert<Half, float>(const void* in, void* out, size_t n) {
  widen_all(static_cast<const Half*>(in), static_cast<float*>(out), n);
}

template <>
void convert<float, Half>(const void* in, void* out, size_t n) {
  const float* x = static_cast<const float*>(in);
  Half* y = static_cast<Half*>(out);
  size_t i = 0;
#if defined(RL_NEON)
  for (; i + 4 <= n; i += 4) {
    vst1_u16(&y[i].bits, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
  }
#else
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(x + i), kNearest);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), halves);
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), kNearest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), halves);
  }
#endif
  for (; i < n; ++i) y[i] = narrow_half(x[i]);
}
#endif

using ConvertRow = ConvertFn[kConvertedDTypes];

template <DType dtype>
constexpr void put(ConvertRow& row, ConvertFn fn) {
  if constexpr (selection::has_dtype(dtype)) row[static_cast<size_t>(dtype)] = fn;
}

// The conversions between types in memory and one that kernels compute in, if this build has both.
template <ComputeType type, typename C>
constexpr void fill_rows(ConvertLoops& loops) {
  if constexpr (keeps_compute(type)) {
    ConvertRow& to = loops.to[type];
    ConvertRow& from = loops.from[type];
#define RL_BETWEEN(dtype, T)              \
  put<DType::dtype>(to, (convert<T, C>)); \
  put<DType::dtype>(from, (convert<C, T>));
    RL_BETWEEN(UInt8, uint8_t)
    RL_BETWEEN(Int8, int8_t)
    RL_BETWEEN(Int16, int16_t)
    RL_BETWEEN(Int32, int32_t)
    RL_BETWEEN(Int64, int64_t)
    RL_BETWEEN(Float16, Half)
    RL_BETWEEN(Float32, float)
    RL_BETWEEN(Float64, double)
    RL_BETWEEN(Bool, Truth)
    RL_BETWEEN(BFloat16, BFloat)
    RL_BETWEEN(UInt16, uint16_t)
    RL_BETWEEN(UInt32, uint32_t)
    RL_BETWEEN(UInt64, uint64_t)
#undef RL_BETWEEN
  }
}

constexpr ConvertLoops all_rows() {
  ConvertLoops loops{};
  fill_rows<kF32, float>(loops);
  fill_rows<kF64, double>(loops);
  fill_rows<kI64, int64_t>(loops);
  fill_rows<kI32, int32_t>(loops);
  fill_rows<kBool, Truth>(loops);
  return loops;
}

}  // namespace

const ConvertLoops convert_loops = all_rows();

}  // namespace rushlight::kernels::RL_ISA
