// Numbers as text, the same in every locale: as JSON and Python read and write them.
#pragma once

#include <cstdint>
#include <string>

namespace rushlight::llm {

// The double nearest to a decimal number, which may have a fraction and an exponent; infinite if it
// is beyond all of them. The text must be such a number.
double read_double(const std::string& text);

// The integer that `digits` (a sign, then digits) say; false if it is beyond 64 bits.
bool read_integer(const std::string& digits, int64_t* integer);

// The shortest text that reads back as the same number, as Python's repr writes it: 1.0, 1e+16,
// 2.5e-07, nan, inf, -inf.
std::string write_double(double number);

}  // namespace rushlight::llm
