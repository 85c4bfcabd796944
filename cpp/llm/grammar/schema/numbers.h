// JSON numbers within bounds, and multiples, as automata over their digits.
#pragma once

#include <cstdint>
#include <string>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/regex/dfa.h"
#include "rushlight/llm/json/value.h"

namespace rushlight::llm::grammar {

// A number by its digits, without zeros at either end: 12.5 is "12" and "5"; 0 is "0" and "".
struct Decimal {
  bool is_negative = false;
  std::string whole = "0", fraction;
};

Decimal decimal_of(const JsonValue& number);
// -1, 0 or 1.
int compare(const Decimal& a, const Decimal& b);

struct Bound {
  bool exists = false;
  bool is_exclusive = false;
  Decimal value;
};

struct NumberRange {
  Bound low, high;
};

// The texts of all numbers of the range. Without bounds numbers may have exponents, with them not.
Result<Dfa> numbers_within(const NumberRange& range, bool integers, Budget* budget,
                           Message* message);
// Those that are multiples of `unit`, without exponents and perhaps written in another way than
// JSON's.
Result<Dfa> multiples_of(const Decimal& unit, Budget* budget, Message* message);

}  // namespace rushlight::llm::grammar
