// The methods of Python's str.
#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/builtins/text_operations.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

// Options of methods: the sides that they work on, or begin at.
enum : unsigned { kAtStart = 1, kAtEnd = 2 };

Status strip(const TextCall& call, Value* out) {
  Value characters;
  RL_TRY(bind(call.run, call.name, call.arguments, {"chars"}, &characters));
  return strip_text(call.run, call.text, characters, (call.option & kAtStart) != 0,
                    (call.option & kAtEnd) != 0, out);
}

// The parts of a text between separators, of which the first (or last) `most` count.
class Splitter {
 public:
  Splitter(RunContext& run, const Text& text, size_t most) : run_(run), text_(text), most_(most) {}

  Status at_separators(const std::string& separator, bool from_right) {
    std::vector<size_t> places;
    const StringView part{separator.data(), separator.size()};
    for (size_t at = 0; (at = find_bytes(text_.view(), part, at)) != std::string::npos;) {
      places.push_back(at);
      at += separator.size();
    }
    if (from_right) places_from_right(separator, &places);
    if (places.size() > most_) {
      places.erase(
          from_right ? places.begin() : places.begin() + static_cast<std::ptrdiff_t>(most_),
          from_right ? places.end() - static_cast<std::ptrdiff_t>(most_) : places.end());
    }
    size_t at = 0;
    for (size_t place : places) {
      RL_TRY(add(at, place));
      at = place + separator.size();
    }
    return add(at, text_.size());
  }

  Status at_spaces() {
    size_t at = 0;
    while (true) {
      const StringView rest{text_.bytes().data() + at, text_.size() - at};
      const size_t start = at + stripped(rest, true, false).begin;
      if (start == text_.size()) return Code::Ok;
      if (parts.size() == most_) {
        return add(
            start,
            start +
                stripped({text_.bytes().data() + start, text_.size() - start}, false, true).end);
      }
      size_t end = start;
      for (Characters word({text_.bytes().data() + start, text_.size() - start}); !word.at_end();) {
        if (is_space(word.next())) break;
        end = start + word.at();
      }
      RL_TRY(add(start, end));
      at = end;
    }
  }

  std::vector<Value> parts;

 private:
  // Separators that overlap are found from the right.
  void places_from_right(const std::string& separator, std::vector<size_t>* places) {
    const std::string reversed(text_.bytes().rbegin(), text_.bytes().rend());
    const std::string part(separator.rbegin(), separator.rend());
    places->clear();
    for (size_t at = 0; (at = find_bytes({reversed.data(), reversed.size()},
                                         {part.data(), part.size()}, at)) != std::string::npos;) {
      at += part.size();
      places->push_back(text_.size() - at);
    }
    std::reverse(places->begin(), places->end());
  }

  Status add(size_t begin, size_t end) {
    parts.emplace_back();
    return run_.make_text(text_.slice(begin, end), &parts.back());
  }

  RunContext& run_;
  const Text& text_;
  size_t most_;
};

Status split(const TextCall& call, Value* out) {
  const bool from_right = call.option == kAtEnd;
  Value parts[2];
  RL_TRY(bind(call.run, call.name, call.arguments, {"sep", "maxsplit"}, parts));
  int64_t most = -1;
  RL_TRY(integer_argument(call.run, call.name, parts[1], -1, &most));
  Splitter splitter(call.run, call.text, most < 0 ? SIZE_MAX : static_cast<size_t>(most));
  RL_TRY(call.run.charge(1 + call.text.size() / 16));
  if (parts[0].is(Kind::Missing) || parts[0].is(Kind::None)) {
    if (from_right && most >= 0) {
      return call.run.fail("'rsplit' with 'maxsplit' needs a separator");
    }
    RL_TRY(splitter.at_spaces());
  } else {
    const Text* separator = nullptr;
    RL_TRY(text_argument(call.run, call.name, parts[0], &separator));
    if (separator->empty()) return call.run.fail("'%s' has an empty separator", call.name);
    RL_TRY(splitter.at_separators(separator->bytes(), from_right));
  }
  return call.run.make_items(Kind::List, std::move(splitter.parts), out);
}

Status splitlines(const TextCall& call, Value* out) {
  Value keeps;
  RL_TRY(bind(call.run, call.name, call.arguments, {"keepends"}, &keeps));
  std::vector<Value> lines;
  for (const Line& line : lines_of(call.text.view())) {
    lines.emplace_back();
    const size_t end = is_true(keeps) ? line.next : line.end;
    RL_TRY(call.run.make_text(call.text.slice(line.begin, end), &lines.back()));
  }
  return call.run.make_items(Kind::List, std::move(lines), out);
}

bool has_end(const std::string& text, const std::string& part, bool at_start) {
  return text.size() >= part.size() &&
         text.compare(at_start ? 0 : text.size() - part.size(), part.size(), part) == 0;
}

Status has_affix(const TextCall& call, Value* out) {
  const bool at_start = call.option == kAtStart;
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"prefix"}, &part, 1));
  const std::vector<Value> one = {part};
  *out = Value::boolean(false);
  for (const Value& each : part.is(Kind::Tuple) ? part.items() : one) {
    const Text* end = nullptr;
    RL_TRY(text_argument(call.run, call.name, each, &end));
    if (has_end(call.text.bytes(), end->bytes(), at_start)) *out = Value::boolean(true);
  }
  return Code::Ok;
}

Status remove_affix(const TextCall& call, Value* out) {
  const bool at_start = call.option == kAtStart;
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"prefix"}, &part, 1));
  const Text* end = nullptr;
  RL_TRY(text_argument(call.run, call.name, part, &end));
  const size_t size = has_end(call.text.bytes(), end->bytes(), at_start) ? end->size() : 0;
  return call.run.make_text(
      call.text.slice(at_start ? size : 0, call.text.size() - (at_start ? 0 : size)), out);
}

Status replace(const TextCall& call, Value* out) {
  Value parts[3];
  RL_TRY(bind(call.run, call.name, call.arguments, {"old", "new", "count"}, parts, 2));
  const Text *from = nullptr, *to = nullptr;
  RL_TRY(text_argument(call.run, call.name, parts[0], &from));
  RL_TRY(text_argument(call.run, call.name, parts[1], &to));
  int64_t most = -1;
  RL_TRY(integer_argument(call.run, call.name, parts[2], -1, &most));
  return replace_text(call.run, call.text, *from, *to, most, out);
}

Status no_arguments(const TextCall& call) {
  Value none;
  return bind(call.run, call.name, call.arguments, {}, &none);
}

Status upper(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  return call.run.make_text(call.text.made(change_case(call.text.view(), Case::Upper)), out);
}
Status lower(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  return call.run.make_text(call.text.made(change_case(call.text.view(), Case::Lower)), out);
}
Status capitalize(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  return call.run.make_text(call.text.made(capitalized(call.text.view())), out);
}

Status title(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  std::string result;
  bool in_word = false;
  for (Characters characters(call.text.view()); !characters.at_end();) {
    const uint32_t code = characters.next();
    append_case(code, in_word ? Case::Lower : Case::Title, &result);
    in_word = (character_flags(code) & (kUppercase | kLowercase)) != 0;
  }
  return call.run.make_text(call.text.made(std::move(result)), out);
}

Status find(const TextCall& call, Value* out) {
  const bool from_right = call.option == kAtEnd;
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"sub"}, &part, 1));
  const Text* wanted = nullptr;
  RL_TRY(text_argument(call.run, call.name, part, &wanted));
  RL_TRY(call.run.charge(1 + call.text.size() / 16));
  size_t place = std::string::npos;
  for (size_t at = 0;
       (at = find_bytes(call.text.view(), wanted->view(), at)) != std::string::npos;) {
    place = at++;
    if (!from_right || wanted->empty()) break;
    RL_TRY(call.run.charge(1 + wanted->size() / 16));
  }
  if (from_right && wanted->empty()) place = call.text.size();
  const bool is_there = place != std::string::npos;
  *out = Value::integer(
      is_there ? static_cast<int64_t>(count_characters({call.text.bytes().data(), place})) : -1);
  return Code::Ok;
}

Status index(const TextCall& call, Value* out) {
  RL_TRY(find(call, out));
  return out->integer() < 0 ? call.run.fail("'index': the text is not there") : Status();
}

Status count(const TextCall& call, Value* out) {
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"sub"}, &part, 1));
  const Text* wanted = nullptr;
  RL_TRY(text_argument(call.run, call.name, part, &wanted));
  RL_TRY(call.run.charge(1 + call.text.size() / 16));
  int64_t number = 0;
  if (wanted->empty()) number = static_cast<int64_t>(count_characters(call.text.view())) + 1;
  for (size_t at = 0; !wanted->empty() && at < call.text.size(); ++number) {
    at = find_bytes(call.text.view(), wanted->view(), at);
    if (at == std::string::npos) break;
    at += wanted->size();
  }
  *out = Value::integer(number);
  return Code::Ok;
}

Status join(const TextCall& call, Value* out) {
  Value parts;
  RL_TRY(bind(call.run, call.name, call.arguments, {"iterable"}, &parts, 1));
  return join_items(call.run, parts, call.text, true, out);
}

Status format(const TextCall& call, Value* out) {
  return format_braces(call.run, call.text, call.arguments.values, call.arguments.named, out);
}

// Whether all characters have one of the flags, and there are any.
Status all_are(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  bool all = !call.text.empty();
  for (Characters characters(call.text.view()); all && !characters.at_end();) {
    all = (character_flags(characters.next()) & call.option) != 0;
  }
  *out = Value::boolean(all);
  return Code::Ok;
}

Status isspace(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  const TextRange rest = stripped(call.text.view(), true, false);
  *out = Value::boolean(!call.text.empty() && rest.begin == rest.end);
  return Code::Ok;
}
Status has_case(const TextCall& call, Value* out) {
  RL_TRY(no_arguments(call));
  *out = Value::boolean(has_only_case(call.text.view(), call.option));
  return Code::Ok;
}

Status justify(const TextCall& call, Value* out) {
  Value parts[2];
  RL_TRY(bind(call.run, call.name, call.arguments, {"width", "fillchar"}, parts, 1));
  int64_t width = 0;
  RL_TRY(integer_argument(call.run, call.name, parts[0], 0, &width));
  const Text space(" ");
  const Text* fill = &space;
  if (!parts[1].is(Kind::Missing)) RL_TRY(text_argument(call.run, call.name, parts[1], &fill));
  if (count_characters(fill->view()) != 1) {
    return call.run.fail("'%s' fills with one character", call.name);
  }
  return pad_text(call.run, call.text, width, *fill, static_cast<Side>(call.option), out);
}

Status zfill(const TextCall& call, Value* out) {
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"width"}, &part, 1));
  int64_t width = 0;
  RL_TRY(integer_argument(call.run, call.name, part, 0, &width));
  const bool has_sign =
      !call.text.empty() && (call.text.bytes()[0] == '-' || call.text.bytes()[0] == '+');
  if (!has_sign) return pad_text(call.run, call.text, width, Text("0"), Side::Left, out);
  Value digits;
  RL_TRY(pad_text(call.run, call.text.slice(1, call.text.size()), width - 1, Text("0"), Side::Left,
                  &digits));
  Text signed_text = call.text.slice(0, 1);
  signed_text.append(digits.text());
  return call.run.make_text(std::move(signed_text), out);
}

Status partition(const TextCall& call, Value* out) {
  const bool from_right = call.option == kAtEnd;
  Value part;
  RL_TRY(bind(call.run, call.name, call.arguments, {"sep"}, &part, 1));
  const Text* separator = nullptr;
  RL_TRY(text_argument(call.run, call.name, part, &separator));
  if (separator->empty()) return call.run.fail("'%s' has an empty separator", call.name);
  RL_TRY(call.run.charge(1 + call.text.size() / 16));
  size_t place = find_bytes(call.text.view(), separator->view());
  for (size_t next = place; from_right && next != std::string::npos;) {
    place = next;
    RL_TRY(call.run.charge(1 + separator->size() / 16));
    next = find_bytes(call.text.view(), separator->view(), place + 1);
  }
  const size_t nowhere = from_right ? 0 : call.text.size();
  const bool is_there = place != std::string::npos;
  const size_t begin = is_there ? place : nowhere;
  const size_t end = is_there ? place + separator->size() : nowhere;
  std::vector<Value> parts(3);
  RL_TRY(call.run.make_text(call.text.slice(0, begin), &parts[0]));
  RL_TRY(call.run.make_text(call.text.slice(begin, end), &parts[1]));
  RL_TRY(call.run.make_text(call.text.slice(end, call.text.size()), &parts[2]));
  return call.run.make_items(Kind::Tuple, std::move(parts), out);
}

constexpr TextMethod kMethods[] = {
    {"strip", strip, kAtStart | kAtEnd},
    {"lstrip", strip, kAtStart},
    {"rstrip", strip, kAtEnd},
    {"split", split, kAtStart},
    {"rsplit", split, kAtEnd},
    {"splitlines", splitlines},
    {"startswith", has_affix, kAtStart},
    {"endswith", has_affix, kAtEnd},
    {"removeprefix", remove_affix, kAtStart},
    {"removesuffix", remove_affix, kAtEnd},
    {"replace", replace},
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"find", find, kAtStart},
    {"rfind", find, kAtEnd},
    {"index", index, kAtStart},
    {"count", count},
    {"join", join},
    {"format", format},
    {"isalpha", all_are, kAlphabetic},
    {"isdigit", all_are, kDigit},
    {"isdecimal", all_are, kDecimal},
    {"isnumeric", all_are, kNumeric},
    {"isalnum", all_are, kAlphabetic | kDecimal | kDigit | kNumeric},
    {"isspace", isspace},
    {"isupper", has_case, kUppercase},
    {"islower", has_case, kLowercase},
    {"ljust", justify, static_cast<unsigned>(Side::Right)},
    {"rjust", justify, static_cast<unsigned>(Side::Left)},
    {"center", justify, static_cast<unsigned>(Side::Both)},
    {"zfill", zfill},
    {"partition", partition, kAtStart},
    {"rpartition", partition, kAtEnd},
};

}  // namespace

Span<const TextMethod> text_methods() { return kMethods; }

}  // namespace rushlight::llm
