// Orthogonal polynomials whose degree is an operand. They are computed by their recurrences in the
// operands' own precision, so that they overflow where eager's do. Chebyshev polynomials of a high
// degree have closed forms in -1..1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/elementwise/elementwise.h"
#include "rushlight/kernels/portable/elementwise/special.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kMaxTerms = int64_t{1} << 20;

enum class Family { T, U, V, W, HermiteH, HermiteHe, Laguerre, Legendre };

// Computes p(n), starting from p(1) = first, by p(k + 1) = recurrence(k, p(k), p(k - 1)). Stops at
// NaN.
template <typename T, typename Recurrence>
T climb(int64_t n, T first, Recurrence recurrence) {
  T before = 1;
  T now = first;
  for (int64_t k = 1; k < n && !std::isnan(now); ++k) {
    const T next = recurrence(static_cast<T>(k), now, before);
    before = now;
    now = next;
  }
  return now;
}

template <typename T>
T sign_of_power(int64_t n) {
  return n % 2 == 0 ? T(1) : T(-1);
}

// The values at 1 and at -1, where the closed forms are undefined.
template <typename T, Family kFamily>
T chebyshev_at_end(bool right, int64_t n) {
  const T sign = right ? T(1) : sign_of_power<T>(n);
  const T twice = static_cast<T>(n) + static_cast<T>(n) + 1;
  switch (kFamily) {
    case Family::T:
      return sign;
    case Family::U:
      return sign * (static_cast<T>(n) + 1);
    case Family::V:
      return right ? T(1) : sign * twice;
    default:
      return right ? twice : sign;
  }
}

template <typename T, Family kFamily>
T chebyshev_inside(T x, int64_t n) {
  const T degree = static_cast<T>(n);
  const T angle = std::acos(x);
  switch (kFamily) {
    case Family::T:
      return std::cos(degree * angle);
    case Family::U:
      return std::sin((degree + 1) * angle) / std::sin(angle);
    case Family::V:
      return std::cos((degree + T(0.5)) * angle) / std::cos(angle / 2);
    default:
      return std::sin((degree + T(0.5)) * angle) / std::sin(angle / 2);
  }
}

template <typename T, Family kFamily>
T chebyshev(T x, int64_t n, bool shifted) {
  if (n < 0) return 0;
  // A shifted polynomial is the plain one at 2 x - 1. Its ends are recognised in x, before 2 x - 1
  // is rounded.
  const bool right = x == 1;
  if (right || x == (shifted ? T(0) : T(-1))) return chebyshev_at_end<T, kFamily>(right, n);
  if (shifted) x = x + x - 1;
  const int64_t low = kFamily == Family::T || shifted ? 6 : 8;
  if (n > low && std::abs(x) < 1) return chebyshev_inside<T, kFamily>(x, n);
  if (n == 0) return 1;
  constexpr T kAdded = kFamily == Family::V ? T(-1) : kFamily == Family::W ? T(1) : T(0);
  const T first = kFamily == Family::T ? x : x + x + kAdded;
  return climb(n, first, [x](T, T now, T before) { return (x + x) * now - before; });
}

template <typename T, Family kFamily>
T other(T x, int64_t n) {
  if (n < 0) return 0;
  if (kFamily == Family::Laguerre && x == 0) return 1;
  if (kFamily == Family::Legendre && std::abs(x) == 1) return x > 0 ? T(1) : sign_of_power<T>(n);
  if (n == 0) return 1;
  // Eager's limit.
  constexpr int64_t kHermiteLimit = sizeof(T) == sizeof(float) ? 128 : 512;
  constexpr bool kHermite = kFamily == Family::HermiteH || kFamily == Family::HermiteHe;
  if (kHermite && n > kHermiteLimit) return std::numeric_limits<T>::quiet_NaN();
  switch (kFamily) {
    case Family::HermiteH:
      return climb(n, x + x, [x](T k, T p, T q) { return (x + x) * p - (k + k) * q; });
    case Family::HermiteHe:
      return climb(n, x, [x](T k, T p, T q) { return x * p - k * q; });
    case Family::Laguerre:
      return climb(n, 1 - x,
                   [x](T k, T p, T q) { return (((k + k) + (1 - x)) * p - k * q) / (k + 1); });
    default:
      return climb(n, x, [x](T k, T p, T q) { return ((k + k + 1) * x * p - k * q) / (k + 1); });
  }
}

template <typename T, Family kFamily, bool kShifted>
void loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const T* x = static_cast<const T*>(in[0]);
  const T* degree = static_cast<const T*>(in[1]);
  for (size_t i = 0; i < n; ++i) {
    // Degrees beyond the limit are checked elsewhere. NaN becomes the lowest degree.
    const T bounded = degree[i] > T(-1) ? std::min(degree[i], static_cast<T>(kMaxTerms)) : T(-1);
    const int64_t whole = static_cast<int64_t>(bounded);
    if constexpr (kFamily <= Family::W) {
      static_cast<T*>(out)[i] = chebyshev<T, kFamily>(x[i], whole, kShifted);
    } else {
      static_cast<T*>(out)[i] = other<T, kFamily>(x[i], whole);
    }
  }
}

// Limits the degree, since a recurrence of many terms for each element could run for hours.
Status check_degrees(KernelContext& ctx, const EValue& n) {
  double most = 0;
  if (!n.is_tensor()) {
    most = n.to_double();
  } else {
    const Tensor& tensor = n.tensor();
    double values[kChunk];
    for (int64_t i = 0; i < tensor.numel; i += static_cast<int64_t>(kChunk)) {
      const size_t count =
          static_cast<size_t>(std::min(static_cast<int64_t>(kChunk), tensor.numel - i));
      convert(static_cast<const uint8_t*>(tensor.data) +
                  static_cast<size_t>(i) * element_size(tensor.dtype),
              tensor.dtype, values, DType::Float64, count);
      for (size_t k = 0; k < count; ++k) most = values[k] > most ? values[k] : most;
    }
  }
  if (most <= static_cast<double>(kMaxTerms)) return {};
  return ctx.fail(Code::InvalidArgument, "n is %g, but must be at most %lld", most,
                  static_cast<long long>(kMaxTerms));
}

// polynomial(x, n, *, out): both are tensors, or one of them is a scalar.
template <Family kFamily, bool kShifted = false>
Status polynomial(KernelContext& ctx, EValue* const* args) {
  DType common;
  static const char* const kNames[] = {"x", "n"};
  RL_TRY(common_type(ctx, args, 2, &common, kNames));
  RL_TRY(check_degrees(ctx, *args[1]));
  common = to_floating(common);
  LoopArgs loop_args;
  if (common == DType::Float64) {
    return run_in_common_type(ctx, args, 2, *args[2], common, common,
                              loop<double, kFamily, kShifted>, loop_args);
  }
  return run_in_common_type(ctx, args, 2, *args[2], common, DType::Float32,
                            loop<float, kFamily, kShifted>, loop_args);
}

}  // namespace

#define RL_KERNEL(name, ...)                             \
  Status name(KernelContext& ctx, EValue* const* args) { \
    return polynomial<__VA_ARGS__>(ctx, args);           \
  }
RL_KERNEL(special_chebyshev_polynomial_t_out, Family::T)
RL_KERNEL(special_chebyshev_polynomial_u_out, Family::U)
RL_KERNEL(special_chebyshev_polynomial_v_out, Family::V)
RL_KERNEL(special_chebyshev_polynomial_w_out, Family::W)
RL_KERNEL(special_hermite_polynomial_h_out, Family::HermiteH)
RL_KERNEL(special_hermite_polynomial_he_out, Family::HermiteHe)
RL_KERNEL(special_laguerre_polynomial_l_out, Family::Laguerre)
RL_KERNEL(special_legendre_polynomial_p_out, Family::Legendre)
RL_KERNEL(special_shifted_chebyshev_polynomial_t_out, Family::T, true)
RL_KERNEL(special_shifted_chebyshev_polynomial_u_out, Family::U, true)
RL_KERNEL(special_shifted_chebyshev_polynomial_v_out, Family::V, true)
RL_KERNEL(special_shifted_chebyshev_polynomial_w_out, Family::W, true)
#undef RL_KERNEL

}  // namespace rushlight::kernels
