#include "rushlight/llm/template/values/format.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

constexpr int kMostDigits = 1000;  // of a width or a precision

// How one value is written, in either language.
struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, or that of the value's type
  char sign = '-';
  bool zeros = false;
  bool commas = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr char kWhole[] = "dxXo", kNumbers[] = "dxXofFeEgG";

// The null character, which ends `set`, is none of it.
bool is_one_of(char c, const char* set) { return c != '\0' && std::strchr(set, c) != nullptr; }

// A number at `at`; `fallback` if there is none.
int read_number(const std::string& text, size_t* at, int fallback) {
  if (*at >= text.size() || !is_digit(text[*at])) return fallback;
  int number = 0;
  for (; *at < text.size() && is_digit(text[*at]); ++*at) {
    if (number <= kMostDigits) number = number * 10 + (text[*at] - '0');
  }
  return number;
}

Text padded(const Text& text, const Spec& spec, char align, size_t signs) {
  const size_t length = count_characters(text.view());
  const auto width = static_cast<size_t>(spec.width);
  if (length >= width) return text;
  const size_t missing = width - length;
  const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string before, after;
  for (size_t i = 0; i < missing; ++i) (i < left ? before : after).append(spec.fill);
  Text out = align == '=' ? text.slice(0, signs) : Text();
  out.append(Text(before));
  out.append(align == '=' ? text.slice(signs, text.size()) : text);
  out.append(Text(after));
  return out;
}

std::string with_commas(const std::string& digits) {
  const size_t whole = digits.find_first_not_of("0123456789");
  const size_t end = whole == std::string::npos ? digits.size() : whole;
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i != 0 && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(end);
}

std::string magnitude_of(const Value& value, const Spec& spec) {
  char format[8] = "%.*f";
  char text[512];
  if (is_one_of(spec.type, kWhole)) {
    const int64_t integer =
        value.is(Kind::Float) ? static_cast<int64_t>(value.number()) : value.integer();
    const uint64_t size =
        integer < 0 ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
    std::snprintf(format, sizeof format, "%%ll%c", spec.type == 'd' ? 'u' : spec.type);
    std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(size));
  } else {
    format[3] = spec.type;
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    std::snprintf(text, sizeof text, format, precision, std::fabs(value.number()));
    for (char* c = text; *c != '\0'; ++c) {
      if (*c == ',') *c = '.';  // of the locale
    }
  }
  return text;
}

Status write_number(RunContext& run, const Value& value, const Spec& spec, Text* out) {
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is_number()) {
    return run.fail("the format '%c' needs a number, not a %s", spec.type, type_name(value));
  }
  const bool whole = is_one_of(spec.type, kWhole);
  const double number = value.number();
  if (whole && !(std::fabs(number) < 9.2e18)) return run.fail("a number is beyond 64 bits");
  if (spec.precision > 60 || std::fabs(number) > 1e200) {
    return run.fail("a number is too long to be formatted");
  }
  const bool negative = whole ? number <= -1 : std::signbit(number);
  std::string digits = magnitude_of(value, spec);
  if (spec.commas) digits = with_commas(digits);
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  Spec filled = spec;
  if (spec.zeros && spec.align == '\0') filled.fill = "0";
  const char align = spec.align != '\0' ? spec.align : spec.zeros ? '=' : '>';
  *out = padded(Text(sign + digits), filled, align, sign.size());
  return Code::Ok;
}

Status write_text(RunContext& run, const Value& value, const Spec& spec, char align, Text* out) {
  RL_TRY(to_text(run, value, out));
  if (spec.precision >= 0) {
    *out = out->slice(0, byte_of_character(out->view(), static_cast<size_t>(spec.precision)));
  }
  *out = padded(*out, spec, spec.align != '\0' ? spec.align : align, 0);
  return Code::Ok;
}

Status write_repr(RunContext& run, const Value& value, Value* out) {
  Text text;
  RL_TRY(to_text(run, value, &text));
  if (value.is(Kind::String)) text = text.made(quoted(text.view()));
  return run.make_text(std::move(text), out);
}

class Percent {
 public:
  Percent(RunContext& run, const Text& format, const Value& value)
      : run_(run), format_(format), bytes_(format.bytes()), value_(value) {}

  Status write(Text* out) {
    size_t at = 0;
    while (at < bytes_.size()) {
      const size_t mark = std::min(bytes_.find('%', at), bytes_.size());
      RL_TRY(run_.append(format_.slice(at, mark), out));
      at = mark;
      if (at == bytes_.size()) break;
      ++at;
      RL_TRY(one(&at, out));
    }
    // Python takes everything that has items, but text and tuples, for named values.
    const bool is_named = value_.is(Kind::Dict) || value_.is(Kind::List) ||
                          value_.is(Kind::Range) || value_.is(Kind::Undefined);
    const bool all_used = is_named || used_ >= count();
    return all_used ? Status() : run_.fail("not all values were used by a format");
  }

 private:
  size_t count() const { return value_.is(Kind::Tuple) ? value_.items().size() : 1; }

  Status next(const std::string& key, Value* value) {
    if (!key.empty()) {
      const Value* member =
          value_.is(Kind::Dict) ? value_.as<DictObject>().find({key.data(), key.size()}) : nullptr;
      if (member == nullptr) return run_.fail("a format has no value '%s'", key.c_str());
      *value = *member;
      return Code::Ok;
    }
    if (used_ >= count()) return run_.fail("a format has too few values");
    *value = value_.is(Kind::Tuple) ? value_.items()[used_] : value_;
    ++used_;
    return Code::Ok;
  }

  void flags(size_t* at, Spec* spec) {
    for (; *at < bytes_.size(); ++*at) {
      const char c = bytes_[*at];
      if (c == '-') {
        spec->align = '<';
      } else if (c == '0') {
        spec->zeros = true;
      } else if (c == '+' || c == ' ') {
        if (spec->sign != '+') spec->sign = c;
      } else {
        break;
      }
    }
  }

  Status one(size_t* at, Text* out) {
    std::string key;
    if (*at < bytes_.size() && bytes_[*at] == '(') {
      const size_t close = bytes_.find(')', *at);
      if (close == std::string::npos) return run_.fail("a format has no ')' after '%%('");
      key = bytes_.substr(*at + 1, close - *at - 1);
      *at = close + 1;
    }
    Spec spec;
    flags(at, &spec);
    spec.width = read_number(bytes_, at, 0);
    if (*at < bytes_.size() && bytes_[*at] == '.') {
      ++*at;
      spec.precision = read_number(bytes_, at, 0);
    }
    if (spec.width > kMostDigits || spec.precision > kMostDigits) {
      return run_.fail("a format has a width of more than %d", kMostDigits);
    }
    if (*at == bytes_.size()) return run_.fail("a format ends after '%%'");
    spec.type = bytes_[(*at)++];
    if (spec.type == '%') return run_.append("%", out);
    Value value;
    RL_TRY(next(key, &value));
    return formatted(spec, value, out);
  }

  Status formatted(Spec spec, Value value, Text* out) {
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    Text text;
    if (spec.type == 's' || spec.type == 'r') {
      if (spec.type == 'r') RL_TRY(write_repr(run_, value, &value));
      RL_TRY(write_text(run_, value, spec, '>', &text));
    } else if (is_one_of(spec.type, kNumbers)) {
      RL_TRY(write_number(run_, value, spec, &text));
    } else {
      return run_.fail("the format '%%%c' is not supported", spec.type);
    }
    return run_.append(text, out);
  }

  RunContext& run_;
  const Text& format_;
  const std::string& bytes_;
  const Value& value_;
  size_t used_ = 0;
};

class Braces {
 public:
  Braces(RunContext& run, const Text& format, const std::vector<Value>& values,
         const std::vector<NamedValue>& named)
      : run_(run), format_(format), bytes_(format.bytes()), values_(values), named_(named) {}

  Status write(Text* out) {
    size_t at = 0;
    while (at < bytes_.size()) {
      const size_t mark = std::min(bytes_.find_first_of("{}", at), bytes_.size());
      RL_TRY(run_.append(format_.slice(at, mark), out));
      at = mark;
      if (at == bytes_.size()) break;
      const bool doubled = at + 1 < bytes_.size() && bytes_[at + 1] == bytes_[at];
      if (doubled) {
        RL_TRY(run_.append(format_.slice(at, at + 1), out));
        at += 2;
        continue;
      }
      const size_t close = bytes_.find_first_of("{}", at + 1);
      if (bytes_[at] == '}' || close == std::string::npos || bytes_[close] == '{') {
        return run_.fail("a format has a single '%c'", bytes_[at]);
      }
      RL_TRY(one(bytes_.substr(at + 1, close - at - 1), out));
      at = close + 1;
    }
    return Code::Ok;
  }

 private:
  Status find(const std::string& name, Value* value) {
    size_t at = 0;
    const int number = name.empty() ? static_cast<int>(next_++) : read_number(name, &at, -1);
    if (name.empty() || (number >= 0 && at == name.size())) {
      if (static_cast<size_t>(number) >= values_.size()) {
        return run_.fail("a format has no value %d", number);
      }
      *value = values_[static_cast<size_t>(number)];
      return Code::Ok;
    }
    for (const NamedValue& one : named_) {
      if (one.first != name) continue;
      *value = one.second;
      return Code::Ok;
    }
    return run_.fail("a format has no value '%s'", name.c_str());
  }

  Status one(const std::string& field, Text* out) {
    const size_t colon = std::min(field.find(':'), field.size());
    const size_t mark = std::min(field.find('!'), colon);
    Value value;
    RL_TRY(find(field.substr(0, mark), &value));
    if (mark < colon) {
      const std::string how = field.substr(mark + 1, colon - mark - 1);
      if (how != "r" && how != "s") return run_.fail("a format has '!%s'", how.c_str());
      if (how == "r") RL_TRY(write_repr(run_, value, &value));
    }
    Spec spec;
    RL_TRY(read_spec(colon < field.size() ? field.substr(colon + 1) : "", &spec));
    Text text;
    if (value.is_number() && !value.is(Kind::Boolean) && spec.type != '\0') {
      RL_TRY(write_number(run_, value, spec, &text));
    } else if (spec.type == '\0' && spec.sign == '-' && !spec.commas && !spec.zeros) {
      if (value.is_number() && spec.precision >= 0) {
        return run_.fail("a format with a precision needs a type such as 'f'");
      }
      RL_TRY(write_text(run_, value, spec, value.is_number() ? '>' : '<', &text));
    } else {
      return run_.fail("the format '{%s}' is not supported for a %s", field.c_str(),
                       type_name(value));
    }
    return run_.append(text, out);
  }

  Status read_spec(const std::string& text, Spec* spec) {
    size_t at = 0;
    const size_t second = byte_of_character({text.data(), text.size()}, 1);
    const auto is_align = [&](size_t i) { return i < text.size() && is_one_of(text[i], "<>^="); };
    if (is_align(second)) {
      spec->fill = text.substr(0, second);
      at = second;
    }
    if (is_align(at)) spec->align = text[at++];
    if (at < text.size() && is_one_of(text[at], "+- ")) spec->sign = text[at++];
    if (at < text.size() && text[at] == '0') {
      spec->zeros = true;
      ++at;
    }
    spec->width = read_number(text, &at, 0);
    if (at < text.size() && text[at] == ',') {
      spec->commas = true;
      ++at;
    }
    if (at < text.size() && text[at] == '.') {
      ++at;
      spec->precision = read_number(text, &at, -1);
    }
    if (at < text.size() && is_one_of(text[at], kNumbers)) spec->type = text[at++];
    if (at < text.size() && text[at] == 's') ++at;
    if (at == text.size() && spec->width <= kMostDigits && spec->precision <= kMostDigits) {
      return Code::Ok;
    }
    return run_.fail("the format '{:%s}' is not supported", text.c_str());
  }

  RunContext& run_;
  const Text& format_;
  const std::string& bytes_;
  const std::vector<Value>& values_;
  const std::vector<NamedValue>& named_;
  size_t next_ = 0;
};

}  // namespace

Status format_percent(RunContext& run, const Text& format, const Value& value, Value* out) {
  Text text;
  RL_TRY(Percent(run, format, value).write(&text));
  return run.make_text(std::move(text), out);
}

Status format_braces(RunContext& run, const Text& format, const std::vector<Value>& values,
                     const std::vector<NamedValue>& named, Value* out) {
  Text text;
  RL_TRY(Braces(run, format, values, named).write(&text));
  return run.make_text(std::move(text), out);
}

}  // namespace rushlight::llm
