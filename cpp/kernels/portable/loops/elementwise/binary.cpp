#include "rushlight/kernels/portable/loops/elementwise/binary.h"

#include "rushlight/kernel/loops/trig.h"
#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename Op, typename T>
void loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  using Result = decltype(Op::apply(T{}, T{}));
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  Result* y = static_cast<Result*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Op::apply(a[i], b[i]);
}

// Loops whose operator has a parameter.
template <typename Op, typename T>
void loop_with(const void* const* in, void* out, size_t n, T p) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Op::apply(a[i], b[i], p);
}
template <typename Op, typename T>
void loop_d(const void* const* in, void* out, size_t n, LoopArgs* args) {
  loop_with<Op>(in, out, n, static_cast<T>(args->d[0]));
}
template <typename Op, typename T>
void loop_i(const void* const* in, void* out, size_t n, LoopArgs* args) {
  loop_with<Op>(in, out, n, static_cast<T>(args->i[0]));
}

// Integer division and similar operators: a zero divisor gives 0 and is reported.
template <typename Op, typename T>
void loop_by(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  bool zero = false;
  for (size_t i = 0; i < n; ++i) {
    const T divisor = b[i];
    zero = zero || divisor == 0;
    // The least number divided by -1 overflows (and traps on x86), so -1 is handled separately.
    y[i] = divisor == 0 ? 0 : divisor == -1 ? Op::by_minus_one(a[i]) : Op::apply(a[i], divisor);
  }
  args->zero_division = args->zero_division || zero;
}

// Integers wrap around, so they are added and multiplied as unsigned numbers.
int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int32_t mul(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
float add(float a, float b) { return a + b; }
double add(double a, double b) { return a + b; }
float mul(float a, float b) { return a * b; }
double mul(double a, double b) { return a * b; }
float mod(float a, float b) { return fmodf(a, b); }
double mod(double a, double b) { return fmod(a, b); }
float copy_sign(float a, float b) { return with_sign_of(a, b); }
double copy_sign(double a, double b) { return with_sign_of(a, b); }

#define RL_OP(Name, expression)   \
  struct Name {                   \
    template <typename T>         \
    static auto apply(T a, T b) { \
      return expression;          \
    }                             \
  };

// Squares of floats are computed in double. With an infinity the result is infinity, even if the
// other operand is NaN.
float distance(float a, float b) {
  const double x = static_cast<double>(a);
  const double y = static_cast<double>(b);
  const float d = static_cast<float>(sqrt(x * x + y * y));
  return vabs(a) == kInf || vabs(b) == kInf ? kInf : d;
}
// Scales by a power of two that keeps the squares of very large and very small numbers in range.
double distance(double a, double b) {
  const double x = vabs(a);
  const double y = vabs(b);
  const double great = x > y ? x : y;
  const double less = x > y ? y : x;
  const double up = great < 0x1p-500 ? 0x1p600 : 1.0;
  const double by = great > 0x1p500 ? 0x1p-600 : up;
  const double d = sqrt((great * by) * (great * by) + (less * by) * (less * by)) / by;
  return x == kDoubleInf || y == kDoubleInf ? kDoubleInf : d;
}

RL_OP(Add, add(a, b))
RL_OP(Mul, mul(a, b))
RL_OP(Div, a / b)
RL_OP(Atan2, vatan2(a, b))
RL_OP(Hypot, distance(a, b))
RL_OP(Cube, a * a * b)
RL_OP(CopySign, copy_sign(a, b))
RL_OP(Eq, static_cast<uint8_t>(a == b))
RL_OP(Ne, static_cast<uint8_t>(a != b))
RL_OP(Lt, static_cast<uint8_t>(a < b))
RL_OP(Le, static_cast<uint8_t>(a <= b))
RL_OP(Gt, static_cast<uint8_t>(a > b))
RL_OP(Ge, static_cast<uint8_t>(a >= b))
RL_OP(And, static_cast<T>(a& b))
RL_OP(Or, static_cast<T>(a | b))
RL_OP(Xor, static_cast<T>(a ^ b))
RL_OP(FloatTruncDiv, vtrunc(a / b))
RL_OP(FloatPow, vpow(a, b))

// A NaN on either side is the result. There are two selections and not one with `||`, which the
// compiler would turn into a branch.
struct Maximum {
  template <typename T>
  static T apply(T a, T b) {
    const T greater = a > b ? a : b;
    return a != a ? a : greater;
  }
};
struct Minimum {
  template <typename T>
  static T apply(T a, T b) {
    const T less = a < b ? a : b;
    return a != a ? a : less;
  }
};

struct AddAlpha {
  template <typename T>
  static T apply(T a, T b, T alpha) {
    return add(a, mul(alpha, b));
  }
};

// Changes C's remainder m of a division by b to the one with the sign of the divisor.
template <typename T>
T to_divisor_sign(T m, T b) {
  return (m != T(0)) & ((b < T(0)) != (m < T(0))) ? m + b : m;
}

// The range of the fast remainder: the product of the quotient and b must be exact, so that the
// difference is, too. For float it is computed in double.
constexpr float kModReach = 268435456.0f;
constexpr double kDoubleModReach = 4503599627370496.0;
bool within_reach(float a, float b) { return vabs(a) < vabs(b) * kModReach; }
#if defined(__FMA__)
bool within_reach(double a, double b) { return vabs(a) < vabs(b) * kDoubleModReach; }
#else
bool within_reach(double, double) { return false; }
#endif

// The quotient may be one too great; the last correction makes up for that.
float small_mod(float a, float b) {
  const double x = static_cast<double>(vabs(a));
  const double y = static_cast<double>(vabs(b));
  const double quotient = static_cast<double>(static_cast<int32_t>(x / y));
  const double m = x - quotient * y;
  return with_sign_of(static_cast<float>(m < 0 ? m + y : m), a);
}
double small_mod(double a, double b) {
  const double x = vabs(a);
  const double y = vabs(b);
  const double m = __builtin_fma(-vtrunc(x / y), y, x);
  return with_sign_of(m < 0 ? m + y : m, a);
}

// Operators that need the remainder of a division. If in a block some quotient is too great or is
// not finite (NaN, infinities, a zero divisor), the block is computed by the C library.
template <typename Op, typename T>
void mod_loop(const void* const* in, void* out, size_t n, LoopArgs*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  for (size_t start = 0; start < n; start += 256) {
    const size_t end = n - start < 256 ? n : start + 256;
    int beyond = 0;
    for (size_t i = start; i < end; ++i) beyond |= !within_reach(a[i], b[i]);
    if (beyond != 0) {
      for (size_t i = start; i < end; ++i) y[i] = Op::finish(mod(a[i], b[i]), a[i], b[i]);
      continue;
    }
    RL_VECTORIZE
    for (size_t i = start; i < end; ++i) y[i] = Op::finish(small_mod(a[i], b[i]), a[i], b[i]);
  }
}

struct FloatFmod {
  template <typename T>
  static T finish(T m, T, T) {
    return m;
  }
};

struct FloatRemainder {
  template <typename T>
  static T finish(T m, T, T b) {
    return to_divisor_sign(m, b);
  }
};

// This is not floor(a / b), since a / b may be rounded up to the next integer. torch computes it in
// the same way.
struct FloatFloorDiv {
  template <typename T>
  static T finish(T m, T a, T b) {
    const T exact = a / b;
    T quotient = (a - m) / b;
    quotient -= (m != T(0)) & ((b < T(0)) != (m < T(0))) ? T(1) : T(0);
    const T floor = vfloor(quotient);
    const T rounded = quotient - floor > T(0.5) ? floor + T(1) : floor;
    const T result = quotient == T(0) ? copy_sign(T(0), exact) : rounded;
    return b == T(0) ? exact : result;
  }
};

template <typename T>
T negated(T a) {
  return mul(a, static_cast<T>(-1));
}

struct IntTruncDiv {
  template <typename T>
  static T by_minus_one(T a) {
    return negated(a);
  }
  template <typename T>
  static T apply(T a, T b) {
    return a / b;
  }
};

struct IntFloorDiv {
  template <typename T>
  static T by_minus_one(T a) {
    return negated(a);
  }
  template <typename T>
  static T apply(T a, T b) {
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};

struct IntFmod {
  template <typename T>
  static T by_minus_one(T) {
    return 0;
  }
  template <typename T>
  static T apply(T a, T b) {
    return a % b;
  }
};

struct IntRemainder {
  template <typename T>
  static T by_minus_one(T) {
    return 0;
  }
  template <typename T>
  static T apply(T a, T b) {
    const T m = a % b;
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
  }
};

struct IntPow {
  template <typename T>
  static T apply(T base, T exponent) {
    if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent % 2 == 0 ? 1 : -1;
    T result = 1;
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }
};

// A shift by a negative amount, or by more than the width of the type, shifts all bits out.
int64_t shifted(int64_t a, int64_t by) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}
int32_t shifted(int32_t a, int32_t by) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << by);
}
struct ShiftLeft {
  template <typename T>
  static T apply(T a, T b, T width) {
    const bool out = (b < 0) | (b >= width);
    const T result = shifted(a, out ? T(0) : b);
    return out ? T(0) : result;
  }
};
struct ShiftRight {
  template <typename T>
  static T apply(T a, T b, T greatest) {
    return static_cast<T>(a >> ((b < 0) | (b >= greatest) ? greatest : b));
  }
};

double of_bits(uint64_t bits) { return double_of(bits); }
float of_bits(uint32_t bits) { return float_of(bits); }

// The next number after a towards b. BinaryOp says what `unit` is.
template <typename T, typename Bits>
T next_after(T a, T b, Bits unit) {
  const Bits x = bits_of(a);
  const Bits sign = bits_of(b) & (Bits{1} << (8 * sizeof(Bits) - 1));
  const Bits moved = (b > a) == (a > T(0)) ? x + unit : x - unit;
  const T next = of_bits(a == T(0) ? unit | sign : moved);
  const T result = a == b ? b : next;
  return (a != a) | (b != b) ? a + b : result;
}

template <typename T, typename Bits>
void next_after_loop(const void* const* in, void* out, size_t n, LoopArgs* args) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* y = static_cast<T*>(out);
  const Bits unit = static_cast<Bits>(args->i[0]);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = next_after(a[i], b[i], unit);
}

// For float16: after division by 2^112 a number's bits are the upper bits of a float, even for
// subnormals. 2^16 stands for infinity.
float shrink(float x) {
  x = x > 65536.0f ? 65536.0f : x;
  x = x < -65536.0f ? -65536.0f : x;
  return x * 0x1p-112f;
}

void next_after_half(const void* const* in, void* out, size_t n, LoopArgs*) {
  const float* a = static_cast<const float*>(in[0]);
  const float* b = static_cast<const float*>(in[1]);
  float* y = static_cast<float*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    y[i] = next_after(shrink(a[i]), shrink(b[i]), uint32_t{1} << 13) * 0x1p112f;
  }
}

template <typename T>
void clamp(const void* const* in, void* out, size_t n, LoopArgs*) {
  const T* x = static_cast<const T*>(in[0]);
  const T* low = static_cast<const T*>(in[1]);
  const T* high = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = Minimum::apply(Maximum::apply(x[i], low[i]), high[i]);
}

template <typename T>
void where(const void* const* in, void* out, size_t n, LoopArgs*) {
  const uint8_t* condition = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const T first = a[i];  // both are loaded in any case, so that there is no branch
    const T second = b[i];
    y[i] = condition[i] != 0 ? first : second;
  }
}

}  // namespace

#define RL_FLOAT(Op)                                                                         \
  {                                                                                          \
    {                                                                                        \
      RL_KEEP(kF32, (loop<Op, float>)), RL_KEEP(kF64, (loop<Op, double>)), nullptr, nullptr, \
          nullptr                                                                            \
    }                                                                                        \
  }
#define RL_REAL(Op)                                                                       \
  {                                                                                       \
    {                                                                                     \
      RL_KEEP(kF32, (loop<Op, float>)), RL_KEEP(kF64, (loop<Op, double>)),                \
          RL_KEEP(kI64, (loop<Op, int64_t>)), RL_KEEP(kI32, (loop<Op, int32_t>)), nullptr \
    }                                                                                     \
  }
#define RL_SPLIT(FloatOp, int_loop, IntOp)                                                      \
  {                                                                                             \
    {                                                                                           \
      RL_KEEP(kF32, (loop<FloatOp, float>)), RL_KEEP(kF64, (loop<FloatOp, double>)),            \
          RL_KEEP(kI64, (int_loop<IntOp, int64_t>)), RL_KEEP(kI32, (int_loop<IntOp, int32_t>)), \
          nullptr                                                                               \
    }                                                                                           \
  }
#define RL_MOD(Op, IntOp)                                                                     \
  {                                                                                           \
    {                                                                                         \
      RL_KEEP(kF32, (mod_loop<Op, float>)), RL_KEEP(kF64, (mod_loop<Op, double>)),            \
          RL_KEEP(kI64, (loop_by<IntOp, int64_t>)), RL_KEEP(kI32, (loop_by<IntOp, int32_t>)), \
          nullptr                                                                             \
    }                                                                                         \
  }
#define RL_ALL(Op)                                                                \
  {                                                                               \
    {                                                                             \
      RL_KEEP(kF32, (loop<Op, float>)), RL_KEEP(kF64, (loop<Op, double>)),        \
          RL_KEEP(kI64, (loop<Op, int64_t>)), RL_KEEP(kI32, (loop<Op, int32_t>)), \
          RL_KEEP(kBool, (loop<Op, uint8_t>))                                     \
    }                                                                             \
  }
#define RL_BITS(Op)                                                                             \
  {                                                                                             \
    {                                                                                           \
      nullptr, nullptr, RL_KEEP(kI64, (loop<Op, int64_t>)), RL_KEEP(kI32, (loop<Op, int32_t>)), \
          RL_KEEP(kBool, (loop<Op, uint8_t>))                                                   \
    }                                                                                           \
  }
#define RL_SHIFT(Op)                                          \
  {                                                           \
    {                                                         \
      nullptr, nullptr, RL_KEEP(kI64, (loop_i<Op, int64_t>)), \
          RL_KEEP(kI32, (loop_i<Op, int32_t>)), nullptr       \
    }                                                         \
  }

const BinaryRow binary_Add = RL_REAL(Add);
const BinaryRow binary_AddAlpha = {{RL_KEEP(kF32, (loop_d<AddAlpha, float>)),
                                    RL_KEEP(kF64, (loop_d<AddAlpha, double>)),
                                    RL_KEEP(kI64, (loop_i<AddAlpha, int64_t>)),
                                    RL_KEEP(kI32, (loop_i<AddAlpha, int32_t>)), nullptr}};
const BinaryRow binary_Mul = RL_REAL(Mul);
const BinaryRow binary_TruncDiv = RL_SPLIT(FloatTruncDiv, loop_by, IntTruncDiv);
const BinaryRow binary_FloorDiv = RL_MOD(FloatFloorDiv, IntFloorDiv);
const BinaryRow binary_Fmod = RL_MOD(FloatFmod, IntFmod);
const BinaryRow binary_Remainder = RL_MOD(FloatRemainder, IntRemainder);
const BinaryRow binary_Pow = RL_SPLIT(FloatPow, loop, IntPow);
const BinaryRow binary_Maximum = RL_REAL(Maximum);
const BinaryRow binary_Minimum = RL_REAL(Minimum);
const BinaryRow binary_Div = RL_FLOAT(Div);
const BinaryRow binary_Atan2 = RL_FLOAT(Atan2);
const BinaryRow binary_Hypot = RL_FLOAT(Hypot);
const BinaryRow binary_Cube = RL_FLOAT(Cube);
const BinaryRow binary_CopySign = RL_FLOAT(CopySign);
const BinaryRow binary_NextAfter = {{RL_KEEP(kF32, (next_after_loop<float, uint32_t>)),
                                     RL_KEEP(kF64, (next_after_loop<double, uint64_t>)), nullptr,
                                     nullptr, nullptr}};
const BinaryRow binary_NextAfterHalf = {
    {RL_KEEP(kF32, (next_after_half)), nullptr, nullptr, nullptr, nullptr}};
const BinaryRow binary_Eq = RL_ALL(Eq);
const BinaryRow binary_Ne = RL_ALL(Ne);
const BinaryRow binary_Lt = RL_ALL(Lt);
const BinaryRow binary_Le = RL_ALL(Le);
const BinaryRow binary_Gt = RL_ALL(Gt);
const BinaryRow binary_Ge = RL_ALL(Ge);
const BinaryRow binary_And = RL_BITS(And);
const BinaryRow binary_Or = RL_BITS(Or);
const BinaryRow binary_Xor = RL_BITS(Xor);
const BinaryRow binary_ShiftLeft = RL_SHIFT(ShiftLeft);
const BinaryRow binary_ShiftRight = RL_SHIFT(ShiftRight);

const BinaryRow clamp_loops = {{RL_KEEP(kF32, (clamp<float>)), RL_KEEP(kF64, (clamp<double>)),
                                RL_KEEP(kI64, (clamp<int64_t>)), RL_KEEP(kI32, (clamp<int32_t>)),
                                nullptr}};
const WhereLoops where_loops = {
    {where<uint8_t>, where<uint16_t>, where<uint32_t>, where<uint64_t>}};

}  // namespace rushlight::kernels::RL_ISA
