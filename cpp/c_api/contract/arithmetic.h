// Numbers of expressions, and what can be done with them, as Python does it.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight::c_api {

// A whole number, or one with a fraction.
struct Number {
  bool is_whole = true;
  int64_t i = 0;
  double d = 0;
  double real() const { return is_whole ? static_cast<double>(i) : d; }
  bool is_true() const { return is_whole ? i != 0 : d != 0; }
};

enum Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kFloorDivide,
  kModulo,
  kDivide,
  kPower,
  kBitAnd,
  kBitOr,
  kBitXor,
  kNegate,
  kPlus,
  kNot,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kMax,
  kMin,
  kAbs,
  kCeilDivide,
  kFloat,
  kTruncate,
  kReal,
};

using RealFunction = double (*)(double);

struct Function {
  const char* name;
  Operator what;
  uint8_t least;  // arguments
  uint8_t most;   // 0: any number
  RealFunction real;
};

// All that an expression can call.
Span<const Function> functions();

// Both return true, unless the number is not finite.
bool whole(int64_t i, Number* value);
bool real(double d, Number* value);

// False if there is no result: a division by zero, or a number beyond 64 bits.
bool compute_binary(uint8_t what, const Number& a, const Number& b, Number* value);

// Less than 0, 0, or more.
int order(const Number& a, const Number& b);

// Whether a comparison holds.
bool holds(uint8_t what, const Number& a, const Number& b);

}  // namespace rushlight::c_api
