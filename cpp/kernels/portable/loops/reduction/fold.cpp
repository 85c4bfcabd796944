#include "rushlight/kernels/portable/loops/reduction/fold.h"

#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "rushlight/kernel/loops/half.h"

namespace rushlight::kernels::RL_ISA {
namespace {

// Integers are computed as uint64_t, so that an overflow wraps around.
template <Fold kFold, typename T>
T folded(T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (kFold) {
    case Fold::Add:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case Fold::Multiply:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case Fold::Max:
      return a != a || a > b ? a : b;
    case Fold::Min:
      return a != a || a < b ? a : b;
  }
  return a;
}

template <Fold kFold>
Half folded(Half a, Half b) {
#if defined(__F16C__)
  return {_cvtss_sh(folded<kFold>(_cvtsh_ss(a.bits), _cvtsh_ss(b.bits)), 0)};
#else
  return narrow_half(folded<kFold>(widen(a), widen(b)));
#endif
}

template <Fold kFold>
BFloat folded(BFloat a, BFloat b) {
  return narrow_bfloat(folded<kFold>(widen(a), widen(b)));
}

struct Truth {
  uint8_t byte;
};

template <Fold kFold>
Truth folded(Truth a, Truth b) {
  const bool any = kFold == Fold::Add || kFold == Fold::Max;
  const bool first = a.byte != 0;
  const bool second = b.byte != 0;
  return {static_cast<uint8_t>(any ? first || second : first && second)};
}

template <Fold kFold, typename T>
void fold(const void* from, int64_t stride, void* to, const int64_t* places, size_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (size_t i = 0; i < n; ++i, x += stride) {
    T& here = y[places[i]];
    here = folded<kFold>(here, *x);
  }
}

template <Fold kFold>
constexpr void fill(FoldFn (&row)[kMaxDType]) {
  row[static_cast<size_t>(DType::UInt8)] = fold<kFold, uint8_t>;
  row[static_cast<size_t>(DType::Int8)] = fold<kFold, int8_t>;
  row[static_cast<size_t>(DType::Int16)] = fold<kFold, int16_t>;
  row[static_cast<size_t>(DType::Int32)] = fold<kFold, int32_t>;
  row[static_cast<size_t>(DType::Int64)] = fold<kFold, int64_t>;
  row[static_cast<size_t>(DType::Float16)] = fold<kFold, Half>;
  row[static_cast<size_t>(DType::Float32)] = fold<kFold, float>;
  row[static_cast<size_t>(DType::Float64)] = fold<kFold, double>;
  row[static_cast<size_t>(DType::BFloat16)] = fold<kFold, BFloat>;
  row[static_cast<size_t>(DType::Bool)] = fold<kFold, Truth>;
}

constexpr FoldLoops make_loops() {
  FoldLoops loops = {};
  fill<Fold::Add>(loops.at[0]);
  fill<Fold::Multiply>(loops.at[1]);
  fill<Fold::Max>(loops.at[2]);
  fill<Fold::Min>(loops.at[3]);
  return loops;
}

}  // namespace

const FoldLoops fold_loops = make_loops();

}  // namespace rushlight::kernels::RL_ISA
