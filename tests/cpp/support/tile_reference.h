// For tests of tile programs: computes one instruction for one element in double precision, and
// provides numbers of every magnitude.
#pragma once

#include <cmath>
#include <limits>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/rows/tile.h"

namespace rushlight {
namespace test {

using engine::TileOp;

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
    case TileOp::EQUAL:
      return truth(a == b);
    case TileOp::NOT_EQUAL:
      return truth(a != b);
    case TileOp::LESS:
      return truth(a < b);
    case TileOp::LESS_EQUAL:
      return truth(a <= b);
    case TileOp::GREATER:
      return truth(a > b);
    case TileOp::GREATER_EQUAL:
      return truth(a >= b);
    case TileOp::AND:
      return truth(a != 0 && b != 0);
    default:
      return truth(a != 0 || b != 0);
  }
}

inline double binary(TileOp op, double a, double b) {
  switch (op) {
    case TileOp::ADD:
      return a + b;
    case TileOp::SUB:
      return a - b;
    case TileOp::MUL:
      return a * b;
    case TileOp::DIV:
      return a / b;
    case TileOp::MIN:
      return nan_or(a, b, std::fmin(a, b));
    case TileOp::MAX:
      return nan_or(a, b, std::fmax(a, b));
    case TileOp::POW:
      return std::pow(a, b);
    case TileOp::FMOD:
      return std::fmod(a, b);
    case TileOp::REMAINDER:
      return remainder_of(a, b);
    default:
      return compare(op, a, b);
  }
}

inline double smooth(TileOp op, double x) {
  switch (op) {
    case TileOp::EXP:
      return std::exp(x);
    case TileOp::EXP2:
      return std::exp2(x);
    case TileOp::EXPM1:
      return std::expm1(x);
    case TileOp::LOG:
      return std::log(x);
    case TileOp::LOG1P:
      return std::log1p(x);
    case TileOp::SIN:
      return std::sin(x);
    case TileOp::COS:
      return std::cos(x);
    case TileOp::TANH:
      return std::tanh(x);
    case TileOp::SIGMOID:
      return sigmoid(x);
    case TileOp::ERF:
      return std::erf(x);
    case TileOp::GELU:
      return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    case TileOp::GELU_TANH:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case TileOp::SILU:
      return x * sigmoid(x);
    case TileOp::MISH:
      return x * std::tanh(softplus(x));
    default:
      return softplus(x);
  }
}

inline double unary(TileOp op, double x, double value) {
  switch (op) {
    case TileOp::NOT:
      return truth(x == 0);
    case TileOp::NEG:
      return -x;
    case TileOp::ABS:
      return std::fabs(x);
    case TileOp::SQUARE:
      return x * x;
    case TileOp::SQRT:
      return std::sqrt(x);
    case TileOp::RSQRT:
      return 1 / std::sqrt(x);
    case TileOp::RECIPROCAL:
      return 1 / x;
    case TileOp::RELU:
      return x < 0 ? 0 : x;
    case TileOp::HARDSWISH:
      return x * relu6(x + 3) / 6;
    case TileOp::HARDSIGMOID:
      return relu6(x + 3) / 6;
    case TileOp::ELU:
      return x > 0 ? x : value * std::expm1(x);
    case TileOp::FLOOR:
      return std::floor(x);
    case TileOp::CEIL:
      return std::ceil(x);
    case TileOp::ROUND:
      return std::nearbyint(x);
    case TileOp::TRUNC:
      return std::trunc(x);
    case TileOp::SIGN:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case TileOp::ADD_VALUE:
      return x + value;
    case TileOp::MUL_VALUE:
      return x * value;
    case TileOp::MIN_VALUE:
      return nan_or(x, x, std::fmin(x, value));
    case TileOp::MAX_VALUE:
      return nan_or(x, x, std::fmax(x, value));
    default:
      return smooth(op, x);
  }
}

inline double apply(const engine::TileInstruction& instruction, double a, double b, double c) {
  const TileOp op = instruction.op;
  if (op == TileOp::MUL_ADD) return a * b + c;
  if (op == TileOp::WHERE) return a != 0 ? b : c;
  if (op >= TileOp::ADD && op <= TileOp::OR) return binary(op, a, b);
  return unary(op, a, static_cast<double>(instruction.value));
}

// Numbers of every magnitude, and special values.
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
