// Filters whose result is text or a number.
#include <cmath>
#include <utility>

#include "rushlight/llm/json/number.h"
#include "rushlight/llm/json/write.h"
#include "rushlight/llm/template/builtins/access.h"
#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/builtins/text_operations.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

Status no_arguments(RunContext& run, const char* name, const Arguments& arguments) {
  Value none;
  return bind(run, name, arguments, {}, &none);
}

Status in_case(RunContext& run, const char* name, const Value& value, const Arguments& arguments,
               Case to, Value* out) {
  RL_TRY(no_arguments(run, name, arguments));
  Text text;
  RL_TRY(to_text(run, value, &text));
  return run.make_text(text.made(change_case(text.view(), to)), out);
}

Status upper(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return in_case(run, "upper", value, arguments, Case::Upper, out);
}
Status lower(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return in_case(run, "lower", value, arguments, Case::Lower, out);
}

Status capitalize(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "capitalize", arguments));
  Text text;
  RL_TRY(to_text(run, value, &text));
  return run.make_text(text.made(capitalized(text.view())), out);
}

// A word begins after a hyphen, white space or an opening bracket; another rule than str.title's.
Status title(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "title", arguments));
  Text text;
  RL_TRY(to_text(run, value, &text));
  std::string result;
  bool starts = true;
  for (Characters characters(text.view()); !characters.at_end();) {
    const uint32_t code = characters.next();
    append_case(code, starts ? Case::Upper : Case::Lower, &result);
    starts =
        code == '-' || code == '(' || code == '{' || code == '[' || code == '<' || is_space(code);
  }
  return run.make_text(text.made(std::move(result)), out);
}

Status trim(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value characters;
  RL_TRY(bind(run, "trim", arguments, {"chars"}, &characters));
  Text text;
  RL_TRY(to_text(run, value, &text));
  return strip_text(run, text, characters, true, true, out);
}

Status as_string(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "string", arguments));
  Text text;
  RL_TRY(to_text(run, value, &text));
  return run.make_text(std::move(text), out);
}

// Chat templates render plain text, so that nothing is escaped for HTML by itself.
Status safe(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  return as_string(run, value, arguments, out);
}

Status escape(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "escape", arguments));
  Text text, result;
  RL_TRY(to_text(run, value, &text));
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    const char* entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '\'' ? "&#39;"
                         : c == '"'  ? "&#34;"
                                     : nullptr;
    if (entity == nullptr) continue;
    RL_TRY(run.append(text.slice(at, i), &result));
    RL_TRY(run.append(Text(entity, text.has_data()), &result));
    at = i + 1;
  }
  RL_TRY(run.append(text.slice(at, text.size()), &result));
  return run.make_text(std::move(result), out);
}

Status replace(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "replace", arguments, {"old", "new", "count"}, parts, 2));
  Text text, from, to;
  RL_TRY(to_text(run, value, &text));
  RL_TRY(to_text(run, parts[0], &from));
  RL_TRY(to_text(run, parts[1], &to));
  if (parts[2].is(Kind::None)) parts[2] = Value::missing();
  int64_t most = -1;
  RL_TRY(integer_argument(run, "replace", parts[2], -1, &most));
  return replace_text(run, text, from, to, most, out);
}

Status center(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value part;
  RL_TRY(bind(run, "center", arguments, {"width"}, &part));
  int64_t width = 0;
  RL_TRY(integer_argument(run, "center", part, 80, &width));
  Text text;
  RL_TRY(to_text(run, value, &text));
  return pad_text(run, text, width, Text(" "), Side::Both, out);
}

Status indent(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "indent", arguments, {"width", "first", "blank"}, parts));
  const Text* whole = nullptr;
  RL_TRY(text_argument(run, "indent", value, &whole));
  Text text = *whole, margin;
  if (parts[0].is(Kind::String)) {
    margin = parts[0].text();
  } else {
    int64_t width = 0;
    RL_TRY(integer_argument(run, "indent", parts[0], 4, &width));
    Value spaces;
    RL_TRY(pad_text(run, Text(), width, Text(" "), Side::Left, &spaces));
    margin = spaces.text();
  }
  text.append(Text("\n"));  // so that a text that ends in a line break keeps it
  Text result;
  bool is_first = true;
  for (const Line& line : lines_of(text.view())) {
    const bool is_blank = line.begin == line.end;
    if (!is_first) RL_TRY(run.append("\n", &result));
    const bool has_margin = is_first ? is_true(parts[1]) : !is_blank || is_true(parts[2]);
    if (has_margin) RL_TRY(run.append(margin, &result));
    RL_TRY(run.append(text.slice(line.begin, line.end), &result));
    is_first = false;
  }
  return run.make_text(std::move(result), out);
}

Status join(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "join", arguments, {"d", "attribute"}, parts));
  Text separator;
  RL_TRY(to_text(run, parts[0], &separator));
  Ref<ListObject> list;
  RL_TRY(items_of(run, value, &list));
  std::vector<Value> texts(list->items.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    RL_TRY(get_path(run, list->items[i], parts[1], &texts[i]));
  }
  Value items;
  RL_TRY(run.make_items(Kind::List, std::move(texts), &items));
  return join_items(run, items, separator, false, out);
}

Status format(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Text text;
  RL_TRY(to_text(run, value, &text));
  Value values;
  if (!arguments.named.empty()) {
    if (!arguments.values.empty()) return run.fail("'format' takes values or named values");
    std::vector<Entry> entries;
    entries.reserve(arguments.named.size());
    for (const NamedValue& named : arguments.named) {
      entries.emplace_back(string_value({named.first.data(), named.first.size()}), named.second);
    }
    RL_TRY(run.make_dict(std::move(entries), &values));
  } else {
    RL_TRY(run.make_items(Kind::Tuple, arguments.values, &values));
  }
  return format_percent(run, text, values, out);
}

Status style_of(RunContext& run, Value parts[4], JsonStyle* style) {
  if (parts[1].is_whole()) {
    const int64_t width = parts[1].integer();
    if (width > 100)
      return run.fail("'tojson' indents by at most 100, got %lld", static_cast<long long>(width));
    *style =
        JsonStyle::indented(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
  } else if (parts[1].is(Kind::String)) {
    *style = JsonStyle::indented(parts[1].text().bytes());
  } else if (!parts[1].is(Kind::Missing) && !parts[1].is(Kind::None)) {
    return run.fail("'tojson' has an indent that is a %s", type_name(parts[1]));
  }
  style->ascii = is_true(parts[0]);
  style->sorts_keys = is_true(parts[3]);
  if (parts[2].is(Kind::Missing) || parts[2].is(Kind::None)) return Code::Ok;
  const bool is_pair = (parts[2].is(Kind::List) || parts[2].is(Kind::Tuple)) &&
                       parts[2].items().size() == 2 && parts[2].items()[0].is(Kind::String) &&
                       parts[2].items()[1].is(Kind::String);
  if (!is_pair) return run.fail("'tojson' needs two texts as separators");
  style->item_separator = parts[2].items()[0].text().bytes();
  style->key_separator = parts[2].items()[1].text().bytes();
  return Code::Ok;
}

Status tojson(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[4];
  RL_TRY(
      bind(run, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, parts));
  JsonStyle style;
  RL_TRY(style_of(run, parts, &style));
  const size_t margin = (style.indent.size() * value.depth()) + style.item_separator.size() +
                        style.key_separator.size();
  RL_TRY(run.charge_bytes(margin * value.weight()));
  JsonValue json;
  bool has_data = false;
  RL_TRY(to_json(run, value, &json, &has_data));
  return run.make_text(Text(write_json(json, style), has_data), out);
}

// --- numbers
// --------------------------------------------------------------------------------------

// A number in Python's notation, with white space around it and '_' between digits.
bool read_number(const Text& text, bool only_whole, std::string* plain) {
  const TextRange range = stripped(text.view(), true, true);
  const std::string bytes = text.bytes().substr(range.begin, range.end - range.begin);
  size_t digits = 0;
  bool has_point = false, has_exponent = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool is_digit = c >= '0' && c <= '9';
    const bool sign =
        (c == '+' || c == '-') && (i == 0 || bytes[i - 1] == 'e' || bytes[i - 1] == 'E');
    if (is_digit) {
      ++digits;
    } else if (c == '_') {
      const bool between = i > 0 && i + 1 < bytes.size() && std::isdigit(bytes[i - 1]) != 0 &&
                           std::isdigit(bytes[i + 1]) != 0;
      if (!between) return false;
      continue;
    } else if (!only_whole && c == '.' && !has_point && !has_exponent) {
      has_point = true;
    } else if (!only_whole && (c == 'e' || c == 'E') && digits > 0 && !has_exponent) {
      has_exponent = true;
      digits = 0;
    } else if (!sign) {
      return false;
    }
    if (!(c == '+' && i == 0)) plain->push_back(c);
  }
  return digits > 0;
}

bool read_special(const Text& text, double* number) {
  const TextRange range = stripped(text.view(), true, true);
  std::string word =
      change_case({text.bytes().data() + range.begin, range.end - range.begin}, Case::Lower);
  const bool negative = !word.empty() && word[0] == '-';
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.erase(0, 1);
  if (word == "nan") *number = std::nan("");
  if (word == "inf" || word == "infinity") *number = negative ? -INFINITY : INFINITY;
  return word == "nan" || word == "inf" || word == "infinity";
}

// A number that a value says; false if it says none.
bool number_of(const Value& value, double* number) {
  if (value.is_number()) {
    *number = value.number();
    return true;
  }
  if (!value.is(Kind::String)) return false;
  std::string plain;
  if (!read_number(value.text(), false, &plain)) return read_special(value.text(), number);
  *number = read_double(plain);
  return true;
}

Status as_int(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "int", arguments, {"default", "base"}, parts));
  if (!parts[1].is(Kind::Missing) && !(parts[1].is_whole() && parts[1].integer() == 10)) {
    return run.fail("'int' is only supported to the base 10");
  }
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  std::string plain;
  int64_t integer = 0;
  if (value.is(Kind::String) && read_number(value.text(), true, &plain)) {
    if (!read_integer(plain, &integer)) return run.fail("an integer would be beyond 64 bits");
    *out = Value::integer(integer);
    return Code::Ok;
  }
  double number = 0;
  if (value.is_whole()) {
    *out = Value::integer(value.integer());
  } else if (number_of(value, &number) && std::isfinite(number)) {
    if (std::fabs(number) >= 9.2e18) return run.fail("an integer would be beyond 64 bits");
    *out = Value::integer(static_cast<int64_t>(number));
  } else if (std::isinf(number)) {
    return run.fail("an infinite float has no integer");
  } else {
    *out = parts[0].is(Kind::Missing) ? Value::integer(0) : parts[0];
  }
  return Code::Ok;
}

Status as_float(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value fallback;
  RL_TRY(bind(run, "float", arguments, {"default"}, &fallback));
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  double number = 0;
  const bool is_number = number_of(value, &number);
  *out = is_number || fallback.is(Kind::Missing) ? Value::number(number) : fallback;
  return Code::Ok;
}

Status absolute(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "abs", arguments));
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is_number()) return run.fail("a %s has no absolute value", type_name(value));
  if (value.is(Kind::Float)) {
    *out = Value::number(std::fabs(value.number()));
    return Code::Ok;
  }
  if (value.integer() < 0) return negated(run, value, out);
  *out = Value::integer(value.integer());
  return Code::Ok;
}

Status round_number(RunContext& run, const Value& value, const Arguments& arguments, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, "round", arguments, {"precision", "method"}, parts));
  int64_t precision = 0;
  RL_TRY(integer_argument(run, "round", parts[0], 0, &precision));
  const std::string method = parts[1].is(Kind::String) ? parts[1].text().bytes() : "common";
  if (value.is(Kind::Undefined)) return run.fail_undefined(value);
  if (!value.is_number()) return run.fail("a %s cannot be rounded", type_name(value));
  if (precision < 0 || precision > 15) return run.fail("'round' keeps 0 to 15 digits");
  const double scale = std::pow(10, static_cast<double>(precision));
  const double number = value.number();
  if (method == "ceil" || method == "floor") {
    *out = Value::number(
        (method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale);
  } else if (method != "common") {
    return run.fail("'round' has the methods common, ceil and floor, not '%s'", method.c_str());
  } else if (value.is_whole()) {
    *out = Value::integer(value.integer());
  } else {
    // Through decimal digits, as Python rounds: the nearest, and of two the even one.
    char digits[512];
    std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), number);
    std::string plain(digits);
    for (char& c : plain) {
      if (c == ',') c = '.';  // of the locale
    }
    *out = Value::number(std::isfinite(number) ? read_double(plain) : number);
  }
  return Code::Ok;
}

constexpr Filter kFilters[] = {
    {"upper", upper},        {"lower", lower},    {"capitalize", capitalize},
    {"title", title},        {"trim", trim},      {"string", as_string},
    {"safe", safe},          {"escape", escape},  {"e", escape},
    {"replace", replace},    {"center", center},  {"indent", indent},
    {"join", join},          {"format", format},  {"tojson", tojson},
    {"int", as_int},         {"float", as_float}, {"abs", absolute},
    {"round", round_number},
};

}  // namespace

Span<const Filter> text_filters() { return kFilters; }

}  // namespace rushlight::llm
