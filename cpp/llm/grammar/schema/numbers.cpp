#include "rushlight/llm/grammar/schema/numbers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "rushlight/llm/json/number.h"

namespace rushlight::llm::grammar {
namespace {

constexpr char kInteger[] = "-?(?:0|[1-9]\\d*)";
constexpr char kDecimal[] = "-?(?:0|[1-9]\\d*)(?:\\.\\d+)?";
constexpr char kNumber[] = "-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?";
constexpr char kFraction[] = "(?:\\.\\d+)?";
constexpr uint64_t kMaxUnit = 10000;

std::string digits(size_t count) { return "\\d{" + std::to_string(count) + "}"; }

// A digit from `low` to `high`; nothing if there is none.
std::string digit(char low, char high) {
  return low > high ? "" : std::string("[") + low + "-" + high + "]";
}

void add(std::string part, std::vector<std::string>* parts) { parts->push_back(std::move(part)); }

std::string choice(const std::vector<std::string>& parts) {
  if (parts.empty()) return "[^\\s\\S]";  // matches nothing
  std::string text = "(?:";
  for (size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? "|" : "") + parts[i];
  return text + ")";
}

// Integers without a sign that are above `whole`, or below it.
std::vector<std::string> above(const std::string& whole) {
  std::vector<std::string> parts;
  const size_t n = whole.size();
  add("[1-9]\\d{" + std::to_string(n) + ",}", &parts);
  for (size_t i = 0; i < n; ++i) {
    const std::string next = digit(static_cast<char>(whole[i] + 1), '9');
    if (!next.empty()) add(whole.substr(0, i).append(next).append(digits(n - i - 1)), &parts);
  }
  return parts;
}

std::vector<std::string> below(const std::string& whole) {
  std::vector<std::string> parts;
  const size_t n = whole.size();
  if (n > 1) add("0|[1-9]\\d{0," + std::to_string(n - 2) + "}", &parts);
  for (size_t i = 0; i < n; ++i) {
    const std::string next = digit(i == 0 && n > 1 ? '1' : '0', static_cast<char>(whole[i] - 1));
    if (!next.empty()) add(whole.substr(0, i).append(next).append(digits(n - i - 1)), &parts);
  }
  return parts;
}

// Numbers without a sign and from `bound` on, or up to it.
std::string from(const Decimal& bound, bool exclusive) {
  const std::string &whole = bound.whole, &fraction = bound.fraction;
  std::vector<std::string> parts = {choice(above(whole)) + kFraction};
  for (size_t i = 0; i < fraction.size(); ++i) {
    const std::string next = digit(static_cast<char>(fraction[i] + 1), '9');
    if (!next.empty())
      add((whole + "\\.").append(fraction, 0, i).append(next).append("\\d*"), &parts);
  }
  const std::string same = fraction.empty() ? whole : whole + "\\." + fraction;
  if (exclusive) {
    add(same + (fraction.empty() ? "\\." : "") + "\\d*[1-9]\\d*", &parts);
  } else {
    add(same + (fraction.empty() ? kFraction : "\\d*"), &parts);
  }
  return choice(parts);
}

std::string up_to(const Decimal& bound, bool exclusive) {
  const std::string &whole = bound.whole, &fraction = bound.fraction;
  std::vector<std::string> parts;
  const std::vector<std::string> less = below(whole);
  if (!less.empty()) add(choice(less) + kFraction, &parts);
  for (size_t i = 0; i < fraction.size(); ++i) {
    const std::string next = digit('0', static_cast<char>(fraction[i] - 1));
    if (!next.empty())
      add((whole + "\\.").append(fraction, 0, i).append(next).append("\\d*"), &parts);
    add(whole + (i > 0 ? "\\." : "") + fraction.substr(0, i), &parts);  // shorter, hence less
  }
  if (!fraction.empty() && !exclusive) add(whole + "\\." + fraction + "0*", &parts);
  if (fraction.empty() && !exclusive) add(whole + "(?:\\.0+)?", &parts);
  return choice(parts);
}

bool is_zero(const Decimal& value) { return value.whole == "0" && value.fraction.empty(); }

void strip(Decimal* value) {
  const size_t first = value->whole.find_first_not_of('0');
  value->whole = first == std::string::npos ? "0" : value->whole.substr(first);
  const size_t last = value->fraction.find_last_not_of('0');
  value->fraction.resize(last == std::string::npos ? 0 : last + 1);
}

// The numbers without a sign whose size is from `low` to `high`.
Result<Dfa> sizes_within(const Bound& low, const Bound& high, Budget* budget, Message* message) {
  Result<Dfa> dfa = dfa_from("(?:0|[1-9]\\d*)(?:\\.\\d+)?", Match::Whole, budget, message);
  for (const Bound* bound : {&low, &high}) {
    if (!dfa.ok() || !bound->exists) continue;
    const std::string pattern = bound == &low ? from(bound->value, bound->is_exclusive)
                                              : up_to(bound->value, bound->is_exclusive);
    const Result<Dfa> side =
        dfa_from({pattern.data(), pattern.size()}, Match::Whole, budget, message);
    if (!side.ok()) return side.status();
    dfa = combine(*dfa, side.value(), Combine::And, budget, message);
  }
  return dfa;
}

// Puts a minus before every text.
Dfa negated(const Dfa& dfa) {
  Dfa result;
  result.starts = dfa.starts;
  for (const uint32_t start : {uint32_t{'-'}, uint32_t{'-'} + 1}) {
    const auto at = std::lower_bound(result.starts.begin(), result.starts.end(), start);
    if (at == result.starts.end() || *at != start) result.starts.insert(at, start);
  }
  result.accepts = {0};
  result.accepts.insert(result.accepts.end(), dfa.accepts.begin(), dfa.accepts.end());
  for (const uint32_t start : result.starts) result.next.push_back(start == '-' ? 1 : kDead);
  for (uint32_t state = 0; state < dfa.states(); ++state) {
    for (const uint32_t start : result.starts) {
      const auto next = std::upper_bound(dfa.starts.begin(), dfa.starts.end(), start);
      const uint32_t target = dfa.after(state, static_cast<size_t>(next - dfa.starts.begin()) - 1);
      result.next.push_back(target == kDead ? kDead : target + 1);
    }
  }
  return result;
}

}  // namespace

Decimal decimal_of(const JsonValue& number) {
  std::string text = number.is_integer()        ? std::to_string(number.integer())
                     : !number.digits().empty() ? number.digits()
                                                : write_double(number.number());
  Decimal value;
  value.is_negative = text[0] == '-';
  if (value.is_negative) text.erase(0, 1);
  const size_t e = text.find_first_of("eE");
  const long exponent = e == std::string::npos ? 0 : std::strtol(text.c_str() + e + 1, nullptr, 10);
  if (e != std::string::npos) text.resize(e);
  const size_t point = std::min(text.find('.'), text.size());
  value.whole = text.substr(0, point);
  value.fraction = point < text.size() ? text.substr(point + 1) : "";
  for (long i = 0; i < exponent; ++i) {  // at most 308
    value.whole += value.fraction.empty() ? '0' : value.fraction[0];
    if (!value.fraction.empty()) value.fraction.erase(0, 1);
  }
  for (long i = 0; i > exponent; --i) {
    value.fraction.insert(0, 1, value.whole.empty() ? '0' : value.whole.back());
    if (!value.whole.empty()) value.whole.pop_back();
  }
  strip(&value);
  if (is_zero(value)) value.is_negative = false;
  return value;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.is_negative != b.is_negative) return a.is_negative ? -1 : 1;
  int size = a.whole.size() != b.whole.size() ? (a.whole.size() < b.whole.size() ? -1 : 1)
                                              : a.whole.compare(b.whole);
  if (size == 0) size = a.fraction.compare(b.fraction);
  size = size < 0 ? -1 : size > 0 ? 1 : 0;
  return a.is_negative ? -size : size;
}

Result<Dfa> numbers_within(const NumberRange& range, bool integers, Budget* budget,
                           Message* message) {
  const bool bounded = range.low.exists || range.high.exists;
  Result<Dfa> all = dfa_from(integers  ? kInteger
                             : bounded ? kDecimal
                                       : kNumber,
                             Match::Whole, budget, message);
  if (!all.ok() || !bounded) return all;
  const auto flipped = [](Bound bound) {
    bound.value.is_negative = !bound.value.is_negative && !is_zero(bound.value);
    return bound;
  };
  // A bound on the other side of zero bounds nothing, or leaves nothing.
  const Bound none;
  const bool low_is_negative = !range.low.exists || range.low.value.is_negative;
  const bool high_is_negative = range.high.exists && range.high.value.is_negative;
  Result<Dfa> within = dfa_from("[^\\s\\S]", Match::Whole, budget, message);
  if (!high_is_negative && within.ok()) {
    const Result<Dfa> part =
        sizes_within(low_is_negative ? none : range.low, range.high, budget, message);
    if (!part.ok()) return part.status();
    within = combine(*within, part.value(), Combine::Or, budget, message);
  }
  if (low_is_negative && within.ok()) {
    const Result<Dfa> part = sizes_within(high_is_negative ? flipped(range.high) : none,
                                          flipped(range.low), budget, message);
    if (!part.ok()) return part.status();
    within = combine(*within, negated(part.value()), Combine::Or, budget, message);
  }
  if (!within.ok()) return within;
  return combine(*all, *within, Combine::And, budget, message);
}

Result<Dfa> multiples_of(const Decimal& unit, Budget* budget, Message* message) {
  const std::string scaled = unit.whole + unit.fraction;
  const size_t places = unit.fraction.size();
  const uint64_t size =
      scaled.size() > 9 ? kMaxUnit + 1 : std::strtoul(scaled.c_str(), nullptr, 10);
  if (size == 0 || size > kMaxUnit || size * (places + 2) > 2 * kMaxUnit) {
    return message->fail(Code::NotSupported,
                         "multiples of %s%s%s are not supported: at most 4 digits can be",
                         unit.whole.c_str(), places > 0 ? "." : "", unit.fraction.c_str());
  }
  // A state is the remainder of the digits so far, and how many of them were behind the point.
  const auto rest = static_cast<uint32_t>(size);
  Dfa dfa;
  dfa.starts = {0, '-', '.', '/'};
  for (uint32_t c = '0'; c <= uint32_t{'9'} + 1; ++c) dfa.starts.push_back(c);
  std::sort(dfa.starts.begin(), dfa.starts.end());
  dfa.starts.erase(std::unique(dfa.starts.begin(), dfa.starts.end()), dfa.starts.end());
  // '-' only at the start; "places" states of remainders after the point, from 1 on.
  const auto state = [rest](size_t behind, uint64_t remainder) {
    return static_cast<uint32_t>(1 + behind * rest + remainder);
  };
  dfa.accepts.push_back(0);
  for (const uint32_t c : dfa.starts) {
    const bool is_digit = c >= '0' && c <= '9';
    dfa.next.push_back(c == '-' ? state(0, 0) : is_digit ? state(0, (c - '0') % rest) : kDead);
  }
  // behind: 0 in the whole part, 1 + n after the point and n digits.
  for (size_t behind = 0; behind < places + 2; ++behind) {
    const size_t used = behind > 0 ? behind - 1 : 0;
    for (uint64_t remainder = 0; remainder < rest; ++remainder) {
      uint64_t scale = remainder;
      for (size_t i = used; i < places; ++i) scale = scale * 10 % rest;
      dfa.accepts.push_back(scale == 0 ? 1 : 0);
      for (const uint32_t c : dfa.starts) {
        const bool is_digit = c >= '0' && c <= '9';
        uint32_t next = kDead;
        if (c == '.' && behind == 0) next = state(1, remainder);
        if (is_digit && behind == 0) next = state(0, (remainder * 10 + c - '0') % rest);
        if (is_digit && behind > 0 && used < places) {
          next = state(behind + 1, (remainder * 10 + c - '0') % rest);
        }
        if (c == '0' && behind > 0 && used == places) next = state(behind, remainder);
        dfa.next.push_back(next);
      }
    }
  }
  return minimized(dfa, budget);
}

}  // namespace rushlight::llm::grammar
