#include "rushlight/c_api/contract/arithmetic.h"

#include <cmath>
#include <iterator>

namespace rushlight::c_api {

bool whole(int64_t i, Number* value) {
  *value = {true, i, 0};
  return true;
}

bool real(double d, Number* value) {
  *value = {false, 0, d};
  return std::isfinite(d);
}

namespace {

double round_half_even(double x) { return std::nearbyint(x); }

constexpr Function kFunctions[] = {
    {"max", kMax, 2, 0, nullptr},
    {"Max", kMax, 2, 0, nullptr},
    {"min", kMin, 2, 0, nullptr},
    {"Min", kMin, 2, 0, nullptr},
    {"abs", kAbs, 1, 1, nullptr},
    {"Abs", kAbs, 1, 1, nullptr},
    {"Mod", kModulo, 2, 2, nullptr},
    {"PythonMod", kModulo, 2, 2, nullptr},
    {"FloorDiv", kFloorDivide, 2, 2, nullptr},
    {"CleanDiv", kFloorDivide, 2, 2, nullptr},
    {"CeilDiv", kCeilDivide, 2, 2, nullptr},
    {"Eq", kEqual, 2, 2, nullptr},
    {"Ne", kNotEqual, 2, 2, nullptr},
    {"IntTrueDiv", kDivide, 2, 2, nullptr},
    {"FloatTrueDiv", kDivide, 2, 2, nullptr},
    {"ToFloat", kFloat, 1, 1, nullptr},
    {"torch.sym_float", kFloat, 1, 1, nullptr},
    {"TruncToInt", kTruncate, 1, 1, std::trunc},
    {"FloorToInt", kTruncate, 1, 1, std::floor},
    {"CeilToInt", kTruncate, 1, 1, std::ceil},
    {"RoundToInt", kTruncate, 1, 1, round_half_even},
    {"round", kTruncate, 1, 1, round_half_even},
    {"math.trunc", kTruncate, 1, 1, std::trunc},
    {"math.floor", kTruncate, 1, 1, std::floor},
    {"math.ceil", kTruncate, 1, 1, std::ceil},
    {"torch._sym_sqrt", kReal, 1, 1, std::sqrt},
    {"math.sqrt", kReal, 1, 1, std::sqrt},
    {"math.log2", kReal, 1, 1, std::log2},
    {"math.cos", kReal, 1, 1, std::cos},
    {"math.cosh", kReal, 1, 1, std::cosh},
    {"math.acos", kReal, 1, 1, std::acos},
    {"math.sin", kReal, 1, 1, std::sin},
    {"math.sinh", kReal, 1, 1, std::sinh},
    {"math.asin", kReal, 1, 1, std::asin},
    {"math.tan", kReal, 1, 1, std::tan},
    {"math.tanh", kReal, 1, 1, std::tanh},
    {"math.atan", kReal, 1, 1, std::atan},
};

// Division rounds down, and the rest has the divisor's sign, as in Python.
bool divide(int64_t a, int64_t b, int64_t* quotient, int64_t* rest) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *quotient = a / b;
  *rest = a % b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *quotient -= 1;
    *rest += b;
  }
  return true;
}

bool power(int64_t base, int64_t exponent, int64_t* result) {
  *result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(*result, base, result)) return false;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

bool compute_whole(uint8_t what, int64_t a, int64_t b, Number* value) {
  int64_t result = 0, rest = 0;
  switch (what) {
    case kAdd:
      return !__builtin_add_overflow(a, b, &result) && whole(result, value);
    case kSubtract:
      return !__builtin_sub_overflow(a, b, &result) && whole(result, value);
    case kMultiply:
      return !__builtin_mul_overflow(a, b, &result) && whole(result, value);
    case kFloorDivide:
      return divide(a, b, &result, &rest) && whole(result, value);
    case kModulo:
      return divide(a, b, &result, &rest) && whole(rest, value);
    case kPower:
      return power(a, b, &result) && whole(result, value);
    case kBitAnd:
      return whole(a & b, value);
    case kBitOr:
      return whole(a | b, value);
    case kBitXor:
      return whole(a ^ b, value);
    case kCeilDivide:
      if (a == INT64_MIN || !divide(-a, b, &result, &rest) || result == INT64_MIN) return false;
      return whole(-result, value);
    default:
      return false;
  }
}

bool compute_real(uint8_t what, double a, double b, Number* value) {
  switch (what) {
    case kAdd:
      return real(a + b, value);
    case kSubtract:
      return real(a - b, value);
    case kMultiply:
      return real(a * b, value);
    case kDivide:
      return b != 0 && real(a / b, value);
    case kFloorDivide:
      return b != 0 && real(std::floor(a / b), value);
    case kModulo:
      return b != 0 && real(a - b * std::floor(a / b), value);
    case kPower:
      return real(std::pow(a, b), value);
    case kCeilDivide:
      return b != 0 && real(-std::floor(-a / b), value);
    default:
      return false;
  }
}

}  // namespace

Span<const Function> functions() { return {kFunctions, std::size(kFunctions)}; }

bool compute_binary(uint8_t what, const Number& a, const Number& b, Number* value) {
  const bool is_whole = a.is_whole && b.is_whole && what != kDivide && !(what == kPower && b.i < 0);
  return is_whole ? compute_whole(what, a.i, b.i, value)
                  : compute_real(what, a.real(), b.real(), value);
}

int order(const Number& a, const Number& b) {
  if (a.is_whole && b.is_whole) return a.i < b.i ? -1 : a.i > b.i;
  return a.real() < b.real() ? -1 : a.real() > b.real();
}

bool holds(uint8_t what, const Number& a, const Number& b) {
  const int sign = order(a, b);
  switch (what) {
    case kEqual:
      return sign == 0;
    case kNotEqual:
      return sign != 0;
    case kLess:
      return sign < 0;
    case kLessEqual:
      return sign <= 0;
    case kGreater:
      return sign > 0;
    default:
      return sign >= 0;
  }
}

}  // namespace rushlight::c_api
