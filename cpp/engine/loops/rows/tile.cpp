#include "rushlight/engine/loops/rows/tile.h"

#include "rushlight/kernel/loops/trig.h"
#include "rushlight/kernel/loops/vec.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// --- functions ----------------------------------------------------------------------------------

#define RL_TILE_FN(Name, expression)                                                     \
  void Name([[maybe_unused]] const float* a, [[maybe_unused]] const float* b,            \
            [[maybe_unused]] const float* c, [[maybe_unused]] float value, float* out,   \
            int64_t n) {                                                                 \
    n = n / kTilePad * kTilePad; /* for the compiler: there are no elements left over */ \
    RL_VECTORIZE                                                                         \
    for (int64_t i = 0; i < n; ++i) out[i] = expression;                                 \
  }

inline float condition(bool x) { return x ? 1.0f : 0.0f; }
inline bool holds(float x) { return x != 0.0f; }
// NaN if either is NaN.
inline float least(float x, float y) { return x < y || x != x ? x : y; }
inline float greatest(float x, float y) { return x > y || x != x ? x : y; }

inline float remainder_of(float x, float y) {
  const float r = fmodf(x, y);
  return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}

// erf(x / sqrt 2) as a quotient of polynomials (minimax on 0 to 5.2, error 6e-9), one division
// instead of the exponential of verf; its rounding errors are those that 1 + erf has anyway. Below
// -5.2, where the result is smaller than a unit in the last place of x, it is 0, as in eager
// PyTorch; for minus infinity it is NaN, 0 times infinity, as there.
inline float gelu(float x) {
  constexpr float kEnd = 5.2f;
  float t = x > kEnd ? kEnd : x;
  t = t < -kEnd ? -kEnd : t;
  const float s = t * t;
  float p = 4.946219078760805e-8f;
  p = p * s + 1.2815777154173702e-5f;
  p = p * s + 3.137236926704645e-4f;
  p = p * s + 9.217293933033943e-3f;
  p = p * s + 6.50891661643982e-2f;
  p = p * s + 7.978845238685608e-1f;
  float q = 1.25886754176463e-6f;
  q = q * s + 7.049617124721408e-5f;
  q = q * s + 1.8172040581703186e-3f;
  q = q * s + 2.792670577764511e-2f;
  q = q * s + 2.48243510723114e-1f;
  q = q * s + 1.0f;
  const float half = 0.5f * x;
  return x < -kEnd ? 0.0f * x : half + half * (t * p / q);
}

// x * sigmoid(u)
inline float times_sigmoid(float x, float u) { return x / (1.0f + vexp(-u)); }

// 0.5 * (1 + tanh(u)) is a sigmoid of 2 * u.
inline float gelu_tanh(float x) {
  constexpr float kRoot = 1.59576912160573071f;  // 2 * sqrt(2 / pi)
  return times_sigmoid(x, x * (kRoot + kRoot * 0.044715f * (x * x)));
}

// ln(1 + e^x) = x + ln(1 + e^-x). vlog1p has more special cases than compilers can vectorize in one
// loop with vexp; 1 + e^-|x|, from 1 to 2, is none of them.
inline float softplus(float x) {
  const float t = vexp(-vabs(x));
  const float u = 1.0f + t;
  const Mantissa m = split(u);
  const float low = log1p_tail(m.f) + m.n * -2.12194440e-4f;
  const float lost = (t - (u - 1.0f)) / u;  // as in vlog1p
  const float ln = ((low - 0.5f * m.f * m.f) + m.f) + m.n * 0.693359375f + lost;
  return (x < 0.0f ? 0.0f : x) + ln;
}

inline float relu6(float x) {
  const float low = x < 0.0f ? 0.0f : x;
  return low > 6.0f ? 6.0f : low;
}

inline float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f; }

RL_TILE_FN(Add, a[i] + b[i])
RL_TILE_FN(Sub, a[i] - b[i])
RL_TILE_FN(Mul, a[i] * b[i])
RL_TILE_FN(Div, a[i] / b[i])
RL_TILE_FN(Min, b[i] != b[i] ? b[i] : least(a[i], b[i]))
RL_TILE_FN(Max, b[i] != b[i] ? b[i] : greatest(a[i], b[i]))
RL_TILE_FN(Pow, vpow(a[i], b[i]))
RL_TILE_FN(Fmod, fmodf(a[i], b[i]))
RL_TILE_FN(Remainder, remainder_of(a[i], b[i]))
RL_TILE_FN(MulAdd, a[i] * b[i] + c[i])
RL_TILE_FN(Equal, condition(a[i] == b[i]))
RL_TILE_FN(NotEqual, condition(a[i] != b[i]))
RL_TILE_FN(Less, condition(a[i] < b[i]))
RL_TILE_FN(LessEqual, condition(a[i] <= b[i]))
RL_TILE_FN(Greater, condition(a[i] > b[i]))
RL_TILE_FN(GreaterEqual, condition(a[i] >= b[i]))
RL_TILE_FN(And, condition(holds(a[i]) & holds(b[i])))
RL_TILE_FN(Or, condition(holds(a[i]) | holds(b[i])))
RL_TILE_FN(Not, condition(!holds(a[i])))
RL_TILE_FN(Where, holds(a[i]) ? b[i] : c[i])
RL_TILE_FN(Neg, -a[i])
RL_TILE_FN(Abs, vabs(a[i]))
RL_TILE_FN(Square, a[i] * a[i])
RL_TILE_FN(Sqrt, sqrtf(a[i]))
RL_TILE_FN(Rsqrt, 1.0f / sqrtf(a[i]))
RL_TILE_FN(Reciprocal, 1.0f / a[i])
RL_TILE_FN(Exp, vexp(a[i]))
RL_TILE_FN(Exp2, vexp2(a[i]))
RL_TILE_FN(Expm1, vexpm1(a[i]))
RL_TILE_FN(Log, vlog(a[i]))
RL_TILE_FN(Log1p, vlog1p(a[i]))
RL_TILE_FN(FastSin, vsin(a[i]))
RL_TILE_FN(FastCos, vcos(a[i]))
RL_TILE_FN(Tanh, vtanh(a[i]))
RL_TILE_FN(Sigmoid, vsigmoid(a[i]))
RL_TILE_FN(Erf, verf(a[i]))
RL_TILE_FN(Gelu, gelu(a[i]))
RL_TILE_FN(GeluTanh, gelu_tanh(a[i]))
RL_TILE_FN(Silu, times_sigmoid(a[i], a[i]))
RL_TILE_FN(Mish, a[i] * vtanh(softplus(a[i])))
RL_TILE_FN(Softplus, softplus(a[i]))
RL_TILE_FN(Relu, a[i] < 0.0f ? 0.0f : a[i])
RL_TILE_FN(Hardswish, a[i] * (relu6(a[i] + 3.0f) * (1.0f / 6.0f)))
RL_TILE_FN(Hardsigmoid, relu6(a[i] + 3.0f) * (1.0f / 6.0f))
RL_TILE_FN(Elu, a[i] > 0.0f ? a[i] : value * vexpm1(a[i]))
RL_TILE_FN(Floor, vfloor(a[i]))
RL_TILE_FN(Ceil, vceil(a[i]))
RL_TILE_FN(Round, vround(a[i]))
RL_TILE_FN(Trunc, vtrunc(a[i]))
RL_TILE_FN(Sign, sign(a[i]))
RL_TILE_FN(AddValue, a[i] + value)
RL_TILE_FN(MulValue, a[i] * value)
RL_TILE_FN(MinValue, least(a[i], value))
RL_TILE_FN(MaxValue, greatest(a[i], value))

using Exact = float (*)(float);

// Arguments that are too large for the fast reduction go to the C library, element by element.
template <TileFn kFast, Exact kExact>
void trig(const float* a, const float*, const float*, float, float* out, int64_t n) {
  int beyond = 0;
  for (int64_t i = 0; i < n; ++i) beyond |= vabs(a[i]) > kTrigLimit;
  if (beyond == 0) return kFast(a, nullptr, nullptr, 0, out, n);
  for (int64_t i = 0; i < n; i += kTilePad) {
    float x[kTilePad];
    for (int64_t k = 0; k < kTilePad; ++k) x[k] = a[i + k];
    kFast(x, nullptr, nullptr, 0, out + i, kTilePad);
    for (int64_t k = 0; k < kTilePad; ++k) {
      if (vabs(x[k]) > kTrigLimit) out[i + k] = kExact(x[k]);
    }
  }
}

float exact_sin(float x) { return sinf(x); }
float exact_cos(float x) { return cosf(x); }
constexpr TileFn Sin = trig<FastSin, exact_sin>;
constexpr TileFn Cos = trig<FastCos, exact_cos>;

// --- loads and stores ---------------------------------------------------------------------------

inline void pad(float* out, int64_t n) {
  for (; n % kTilePad != 0; ++n) out[n] = 0;
}

void fill(float value, float* out, int64_t n) {
  n = n / kTilePad * kTilePad;
  for (int64_t i = 0; i < n; ++i) out[i] = value;
}

// Writes whole vectors: the floats after a row belong to the next row, or are padding.
inline void load_row(const float* from, int64_t stride, int64_t n, float* out) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(out + i, kernels::RL_ISA::load(from + i));
    if (i < n) store(out + i, load_first(from + i, n - i));
  } else if (stride == 0) {
    for (int64_t i = 0; i < n; i += kLanes) store(out + i, splat(*from));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = from[i * stride];
  }
}
inline void load_row(const uint8_t* from, int64_t stride, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = from[i * stride] != 0 ? 1.0f : 0.0f;
}

inline void store_row(const float* in, int64_t stride, int64_t n, float* to) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(to + i, kernels::RL_ISA::load(in + i));
    if (i < n) store_first(to + i, load_first(in + i, n - i), n - i);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * stride] = in[i];
  }
}
inline void store_row(const float* in, int64_t stride, int64_t n, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i * stride] = in[i] != 0.0f ? 1 : 0;
}

// For rows of whole vectors.
inline void copy_rows(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                      float* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    for (int64_t i = 0; i < columns; i += kLanes) store(to + i, kernels::RL_ISA::load(from + i));
  }
}

template <typename T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;

template <typename T>
void load_block(const TileBlock& from, float* out) {
  const T* row = static_cast<const T*>(from.data);
  const int64_t n = from.rows * from.columns;
  if constexpr (kIsFloat<T>) {
    if (from.column_stride == 1 && from.columns % kTilePad == 0) {
      return copy_rows(row, from.row_stride, from.rows, from.columns, out, from.columns);
    }
  }
  for (int64_t r = 0; r < from.rows; ++r, row += from.row_stride) {
    load_row(row, from.column_stride, from.columns, out + r * from.columns);
  }
  pad(out, n);
}

template <typename T>
void store_block(const float* in, const TileBlock& to) {
  T* row = static_cast<T*>(to.data);
  if constexpr (kIsFloat<T>) {
    if (to.column_stride == 1 && to.columns % kTilePad == 0) {
      return copy_rows(in, to.columns, to.rows, to.columns, row, to.row_stride);
    }
  }
  for (int64_t r = 0; r < to.rows; ++r, row += to.row_stride) {
    store_row(in + r * to.columns, to.column_stride, to.columns, row);
  }
}

}  // namespace

#define RL_KEEP_OP(op, loop) has_tile_op(TileOp::op) ? loop : nullptr,

const TileLoops tile_loops = {
    {nullptr, nullptr, nullptr, RL_TILE_OPS(RL_KEEP_OP)},
    fill,
    load_block<float>,
    load_block<uint8_t>,
    store_block<float>,
    store_block<uint8_t>,
};

}  // namespace rushlight::engine::RL_ISA
