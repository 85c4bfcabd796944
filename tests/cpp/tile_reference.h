// For tests of tile programs: one instruction on one element in double precision, and numbers of
// every size.
#pragma once

#include <cmath>
#include <limits>

#include "cpu_kernels.h"
#include "rushlight/backends/cpu/kernels/tile.h"

namespace rushlight {
namespace test {

using cpu::TileOp;

inline double truth(bool x) { return x ? 1 : 0; }
inline double nan_or(double x, double y, double result) {
  return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : result;
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline double relu6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
inline double remainder_of(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

inline double compare(TileOp op, double a, double b) {
  switch (op) {
    case TileOp::Equal:
      return truth(a == b);
    case TileOp::NotEqual:
      return truth(a != b);
    case TileOp::Less:
      return truth(a < b);
    case TileOp::LessEqual:
      return truth(a <= b);
    case TileOp::Greater:
      return truth(a > b);
    case TileOp::GreaterEqual:
      return truth(a >= b);
    case TileOp::And:
      return truth(a != 0 && b != 0);
    default:
      return truth(a != 0 || b != 0);
  }
}

inline double binary(TileOp op, double a, double b) {
  switch (op) {
    case TileOp::Add:
      return a + b;
    case TileOp::Sub:
      return a - b;
    case TileOp::Mul:
      return a * b;
    case TileOp::Div:
      return a / b;
    case TileOp::Min:
      return nan_or(a, b, std::fmin(a, b));
    case TileOp::Max:
      return nan_or(a, b, std::fmax(a, b));
    case TileOp::Pow:
      return std::pow(a, b);
    case TileOp::Fmod:
      return std::fmod(a, b);
    case TileOp::Remainder:
      return remainder_of(a, b);
    default:
      return compare(op, a, b);
  }
}

inline double smooth(TileOp op, double x) {
  switch (op) {
    case TileOp::Exp:
      return std::exp(x);
    case TileOp::Exp2:
      return std::exp2(x);
    case TileOp::Expm1:
      return std::expm1(x);
    case TileOp::Log:
      return std::log(x);
    case TileOp::Log1p:
      return std::log1p(x);
    case TileOp::Sin:
      return std::sin(x);
    case TileOp::Cos:
      return std::cos(x);
    case TileOp::Tanh:
      return std::tanh(x);
    case TileOp::Sigmoid:
      return sigmoid(x);
    case TileOp::Erf:
      return std::erf(x);
    case TileOp::Gelu:
      return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    case TileOp::GeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case TileOp::Silu:
      return x * sigmoid(x);
    case TileOp::Mish:
      return x * std::tanh(softplus(x));
    default:
      return softplus(x);
  }
}

inline double unary(TileOp op, double x, double value) {
  switch (op) {
    case TileOp::Not:
      return truth(x == 0);
    case TileOp::Neg:
      return -x;
    case TileOp::Abs:
      return std::fabs(x);
    case TileOp::Square:
      return x * x;
    case TileOp::Sqrt:
      return std::sqrt(x);
    case TileOp::Rsqrt:
      return 1 / std::sqrt(x);
    case TileOp::Reciprocal:
      return 1 / x;
    case TileOp::Relu:
      return x < 0 ? 0 : x;
    case TileOp::Hardswish:
      return x * relu6(x + 3) / 6;
    case TileOp::Hardsigmoid:
      return relu6(x + 3) / 6;
    case TileOp::Elu:
      return x > 0 ? x : value * std::expm1(x);
    case TileOp::Floor:
      return std::floor(x);
    case TileOp::Ceil:
      return std::ceil(x);
    case TileOp::Round:
      return std::nearbyint(x);
    case TileOp::Trunc:
      return std::trunc(x);
    case TileOp::Sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case TileOp::AddValue:
      return x + value;
    case TileOp::MulValue:
      return x * value;
    case TileOp::MinValue:
      return nan_or(x, x, std::fmin(x, value));
    case TileOp::MaxValue:
      return nan_or(x, x, std::fmax(x, value));
    default:
      return smooth(op, x);
  }
}

inline double apply(const cpu::TileInstruction& instruction, double a, double b, double c) {
  const TileOp op = instruction.op;
  if (op == TileOp::MulAdd) return a * b + c;
  if (op == TileOp::Where) return a != 0 ? b : c;
  if (op >= TileOp::Add && op <= TileOp::Or) return binary(op, a, b);
  return unary(op, a, static_cast<double>(instruction.value));
}

// Numbers of every size, and the special ones.
inline std::vector<float> sample(Random& random, int64_t n) {
  const float special[] = {0.0f,        -0.0f, 1.0f,   -1.0f,  kInfinity, -kInfinity,
                           kNotANumber, 0.5f,  2.5f,   -2.5f,  88.5f,     -88.5f,
                           1e-40f,      1e9f,  -3e20f, 1e-20f, 3.4e38f,   20.5f};
  std::vector<float> values = random.reals(n, -6, 6);
  for (int64_t i = 0; i < n; ++i) {
    if (i % 3 == 1) values[i] *= random.real(0, 20);
    if (i % 3 == 2) values[i] = special[random.whole(0, std::size(special) - 1)];
  }
  return values;
}

}  // namespace test
}  // namespace rushlight
