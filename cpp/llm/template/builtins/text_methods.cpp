// The methods of Python's str.
#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/tables.h"
#include "rushlight/llm/template/builtins/text_operations.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {
namespace {

Status strip_side(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                  bool left, bool right, Value* out) {
  Value characters;
  RL_TRY(bind(run, name, arguments, {"chars"}, &characters));
  return strip_text(run, text, characters, left, right, out);
}

Status strip(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return strip_side(run, "strip", text, arguments, true, true, out);
}
Status lstrip(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return strip_side(run, "lstrip", text, arguments, true, false, out);
}
Status rstrip(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return strip_side(run, "rstrip", text, arguments, false, true, out);
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

Status split_from(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                  bool from_right, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, name, arguments, {"sep", "maxsplit"}, parts));
  int64_t most = -1;
  RL_TRY(integer_argument(run, name, parts[1], -1, &most));
  Splitter splitter(run, text, most < 0 ? SIZE_MAX : static_cast<size_t>(most));
  RL_TRY(run.charge(1 + text.size() / 16));
  if (parts[0].is(Kind::Missing) || parts[0].is(Kind::None)) {
    if (from_right && most >= 0) {
      return run.fail("'rsplit' with 'maxsplit' needs a separator");
    }
    RL_TRY(splitter.at_spaces());
  } else {
    const Text* separator = nullptr;
    RL_TRY(text_argument(run, name, parts[0], &separator));
    if (separator->empty()) return run.fail("'%s' has an empty separator", name);
    RL_TRY(splitter.at_separators(separator->bytes(), from_right));
  }
  return run.make_items(Kind::List, std::move(splitter.parts), out);
}

Status split(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return split_from(run, "split", text, arguments, false, out);
}
Status rsplit(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return split_from(run, "rsplit", text, arguments, true, out);
}

Status splitlines(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  Value keeps;
  RL_TRY(bind(run, "splitlines", arguments, {"keepends"}, &keeps));
  std::vector<Value> lines;
  for (const Line& line : lines_of(text.view())) {
    lines.emplace_back();
    const size_t end = is_true(keeps) ? line.next : line.end;
    RL_TRY(run.make_text(text.slice(line.begin, end), &lines.back()));
  }
  return run.make_items(Kind::List, std::move(lines), out);
}

bool has_end(const std::string& text, const std::string& part, bool at_start) {
  return text.size() >= part.size() &&
         text.compare(at_start ? 0 : text.size() - part.size(), part.size(), part) == 0;
}

Status check_end(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                 bool at_start, Value* out) {
  Value part;
  RL_TRY(bind(run, name, arguments, {"prefix"}, &part, 1));
  const std::vector<Value> one = {part};
  *out = Value::boolean(false);
  for (const Value& each : part.is(Kind::Tuple) ? part.items() : one) {
    const Text* end = nullptr;
    RL_TRY(text_argument(run, name, each, &end));
    if (has_end(text.bytes(), end->bytes(), at_start)) *out = Value::boolean(true);
  }
  return Code::Ok;
}

Status startswith(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return check_end(run, "startswith", text, arguments, true, out);
}
Status endswith(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return check_end(run, "endswith", text, arguments, false, out);
}

Status remove_end(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                  bool at_start, Value* out) {
  Value part;
  RL_TRY(bind(run, name, arguments, {"prefix"}, &part, 1));
  const Text* end = nullptr;
  RL_TRY(text_argument(run, name, part, &end));
  const size_t size = has_end(text.bytes(), end->bytes(), at_start) ? end->size() : 0;
  return run.make_text(text.slice(at_start ? size : 0, text.size() - (at_start ? 0 : size)), out);
}

Status removeprefix(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return remove_end(run, "removeprefix", text, arguments, true, out);
}
Status removesuffix(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return remove_end(run, "removesuffix", text, arguments, false, out);
}

Status replace(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  Value parts[3];
  RL_TRY(bind(run, "replace", arguments, {"old", "new", "count"}, parts, 2));
  const Text *from = nullptr, *to = nullptr;
  RL_TRY(text_argument(run, "replace", parts[0], &from));
  RL_TRY(text_argument(run, "replace", parts[1], &to));
  int64_t most = -1;
  RL_TRY(integer_argument(run, "replace", parts[2], -1, &most));
  return replace_text(run, text, *from, *to, most, out);
}

Status no_arguments(RunContext& run, const char* name, const Arguments& arguments) {
  Value none;
  return bind(run, name, arguments, {}, &none);
}

Status upper(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "upper", arguments));
  return run.make_text(text.made(change_case(text.view(), Case::Upper)), out);
}
Status lower(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "lower", arguments));
  return run.make_text(text.made(change_case(text.view(), Case::Lower)), out);
}
Status capitalize(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "capitalize", arguments));
  return run.make_text(text.made(capitalized(text.view())), out);
}

Status title(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "title", arguments));
  std::string result;
  bool in_word = false;
  for (Characters characters(text.view()); !characters.at_end();) {
    const uint32_t code = characters.next();
    append_case(code, in_word ? Case::Lower : Case::Title, &result);
    in_word = (character_flags(code) & (kUppercase | kLowercase)) != 0;
  }
  return run.make_text(text.made(std::move(result)), out);
}

Status place_of(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                bool from_right, Value* out) {
  Value part;
  RL_TRY(bind(run, name, arguments, {"sub"}, &part, 1));
  const Text* wanted = nullptr;
  RL_TRY(text_argument(run, name, part, &wanted));
  RL_TRY(run.charge(1 + text.size() / 16));
  size_t place = std::string::npos;
  for (size_t at = 0; (at = find_bytes(text.view(), wanted->view(), at)) != std::string::npos;) {
    place = at++;
    if (!from_right || wanted->empty()) break;
    RL_TRY(run.charge(1 + wanted->size() / 16));
  }
  if (from_right && wanted->empty()) place = text.size();
  const bool is_there = place != std::string::npos;
  *out = Value::integer(
      is_there ? static_cast<int64_t>(count_characters({text.bytes().data(), place})) : -1);
  return Code::Ok;
}

Status find(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return place_of(run, "find", text, arguments, false, out);
}
Status rfind(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return place_of(run, "rfind", text, arguments, true, out);
}
Status index(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(place_of(run, "index", text, arguments, false, out));
  return out->integer() < 0 ? run.fail("'index': the text is not there") : Status();
}

Status count(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  Value part;
  RL_TRY(bind(run, "count", arguments, {"sub"}, &part, 1));
  const Text* wanted = nullptr;
  RL_TRY(text_argument(run, "count", part, &wanted));
  RL_TRY(run.charge(1 + text.size() / 16));
  int64_t number = 0;
  if (wanted->empty()) number = static_cast<int64_t>(count_characters(text.view())) + 1;
  for (size_t at = 0; !wanted->empty() && at < text.size(); ++number) {
    at = find_bytes(text.view(), wanted->view(), at);
    if (at == std::string::npos) break;
    at += wanted->size();
  }
  *out = Value::integer(number);
  return Code::Ok;
}

Status join(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  Value parts;
  RL_TRY(bind(run, "join", arguments, {"iterable"}, &parts, 1));
  return join_items(run, parts, text, true, out);
}

Status format(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return format_braces(run, text, arguments.values, arguments.named, out);
}

// Whether all characters have one of these flags, and there are any.
Status all_are(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
               unsigned flags, Value* out) {
  RL_TRY(no_arguments(run, name, arguments));
  bool all = !text.empty();
  for (Characters characters(text.view()); all && !characters.at_end();) {
    all = (character_flags(characters.next()) & flags) != 0;
  }
  *out = Value::boolean(all);
  return Code::Ok;
}

Status isalpha(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return all_are(run, "isalpha", text, arguments, kAlphabetic, out);
}
Status isdigit(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return all_are(run, "isdigit", text, arguments, kDigit, out);
}
Status isdecimal(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return all_are(run, "isdecimal", text, arguments, kDecimal, out);
}
Status isnumeric(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return all_are(run, "isnumeric", text, arguments, kNumeric, out);
}
Status isalnum(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  const unsigned flags = kAlphabetic | kDecimal | kDigit | kNumeric;
  return all_are(run, "isalnum", text, arguments, flags, out);
}

Status isspace(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "isspace", arguments));
  const TextRange rest = stripped(text.view(), true, false);
  *out = Value::boolean(!text.empty() && rest.begin == rest.end);
  return Code::Ok;
}
Status isupper(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "isupper", arguments));
  *out = Value::boolean(has_only_case(text.view(), kUppercase));
  return Code::Ok;
}
Status islower(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  RL_TRY(no_arguments(run, "islower", arguments));
  *out = Value::boolean(has_only_case(text.view(), kLowercase));
  return Code::Ok;
}

Status justify(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
               Side side, Value* out) {
  Value parts[2];
  RL_TRY(bind(run, name, arguments, {"width", "fillchar"}, parts, 1));
  int64_t width = 0;
  RL_TRY(integer_argument(run, name, parts[0], 0, &width));
  const Text space(" ");
  const Text* fill = &space;
  if (!parts[1].is(Kind::Missing)) RL_TRY(text_argument(run, name, parts[1], &fill));
  if (count_characters(fill->view()) != 1) return run.fail("'%s' fills with one character", name);
  return pad_text(run, text, width, *fill, side, out);
}

Status ljust(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return justify(run, "ljust", text, arguments, Side::Right, out);
}
Status rjust(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return justify(run, "rjust", text, arguments, Side::Left, out);
}
Status center(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return justify(run, "center", text, arguments, Side::Both, out);
}

Status zfill(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  Value part;
  RL_TRY(bind(run, "zfill", arguments, {"width"}, &part, 1));
  int64_t width = 0;
  RL_TRY(integer_argument(run, "zfill", part, 0, &width));
  const bool has_sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  if (!has_sign) return pad_text(run, text, width, Text("0"), Side::Left, out);
  Value digits;
  RL_TRY(pad_text(run, text.slice(1, text.size()), width - 1, Text("0"), Side::Left, &digits));
  Text signed_text = text.slice(0, 1);
  signed_text.append(digits.text());
  return run.make_text(std::move(signed_text), out);
}

Status partition_at(RunContext& run, const char* name, const Text& text, const Arguments& arguments,
                    bool from_right, Value* out) {
  Value part;
  RL_TRY(bind(run, name, arguments, {"sep"}, &part, 1));
  const Text* separator = nullptr;
  RL_TRY(text_argument(run, name, part, &separator));
  if (separator->empty()) return run.fail("'%s' has an empty separator", name);
  RL_TRY(run.charge(1 + text.size() / 16));
  size_t place = find_bytes(text.view(), separator->view());
  for (size_t next = place; from_right && next != std::string::npos;) {
    place = next;
    RL_TRY(run.charge(1 + separator->size() / 16));
    next = find_bytes(text.view(), separator->view(), place + 1);
  }
  const size_t nowhere = from_right ? 0 : text.size();
  const bool is_there = place != std::string::npos;
  const size_t begin = is_there ? place : nowhere;
  const size_t end = is_there ? place + separator->size() : nowhere;
  std::vector<Value> parts(3);
  RL_TRY(run.make_text(text.slice(0, begin), &parts[0]));
  RL_TRY(run.make_text(text.slice(begin, end), &parts[1]));
  RL_TRY(run.make_text(text.slice(end, text.size()), &parts[2]));
  return run.make_items(Kind::Tuple, std::move(parts), out);
}

Status partition(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return partition_at(run, "partition", text, arguments, false, out);
}
Status rpartition(RunContext& run, const Text& text, const Arguments& arguments, Value* out) {
  return partition_at(run, "rpartition", text, arguments, true, out);
}

constexpr TextMethod kMethods[] = {
    {"strip", strip},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"split", split},
    {"rsplit", rsplit},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"endswith", endswith},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"find", find},
    {"rfind", rfind},
    {"index", index},
    {"count", count},
    {"join", join},
    {"format", format},
    {"isalpha", isalpha},
    {"isdigit", isdigit},
    {"isdecimal", isdecimal},
    {"isnumeric", isnumeric},
    {"isalnum", isalnum},
    {"isspace", isspace},
    {"isupper", isupper},
    {"islower", islower},
    {"ljust", ljust},
    {"rjust", rjust},
    {"center", center},
    {"zfill", zfill},
    {"partition", partition},
    {"rpartition", rpartition},
};

}  // namespace

Span<const TextMethod> text_methods() { return kMethods; }

}  // namespace rushlight::llm
