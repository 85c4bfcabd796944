#include "rushlight/llm/json/number.h"

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace rushlight::llm {
namespace {

#if defined(__cpp_lib_to_chars)

double parse(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc()) return number;
  return std::strtod(text.c_str(), nullptr);  // beyond the range: zero or infinite
}

// The shortest digits in scientific notation: "d.ddde±xx".
std::string shortest(double number) {
  char text[40];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  return error == std::errc() ? std::string(text, end) : std::string("0e+00");
}

#else  // libraries without them: the C library's, with the locale's decimal point exchanged

char decimal_point() { return std::localeconv()->decimal_point[0]; }

double parse(const std::string& text) {
  std::string local = text;
  const size_t point = local.find('.');
  if (point != std::string::npos) local[point] = decimal_point();
  return std::strtod(local.c_str(), nullptr);
}

std::string shortest(double number) {
  char text[40] = {};
  for (int digits = 0; digits < 18; ++digits) {
    std::snprintf(text, sizeof text, "%.*e", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  std::string plain = text;
  const size_t point = plain.find(decimal_point());
  if (point != std::string::npos) plain[point] = '.';
  return plain;
}

#endif

}  // namespace

double read_double(const std::string& text) { return parse(text); }

bool read_integer(const std::string& digits, int64_t* integer) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *integer);
  return error == std::errc() && stop == end;
}

std::string write_double(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const std::string text = shortest(number);
  const size_t mark = text.find('e');
  const int exponent = static_cast<int>(std::strtol(text.c_str() + mark + 1, nullptr, 10));
  const std::string sign = std::signbit(number) ? "-" : "";
  std::string digits;
  for (size_t i = sign.size(); i < mark; ++i) {
    if (text[i] != '.') digits += text[i];
  }
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    char power[16];
    std::snprintf(power, sizeof power, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    return sign + digits[0] + fraction + power;
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace rushlight::llm
