#include "rushlight/llm/json/parse.h"

#include <cstdio>
#include <string>
#include <unordered_map>
#include <utility>

#include "rushlight/llm/json/number.h"
#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(StringView text, Message* message, const JsonLimits& limits)
      : text_(text), message_(message), limits_(limits) {}

  Status document(JsonValue* value) {
    RL_TRY(any(value, 0));
    skip_space();
    if (at_ != text_.size()) return fail("expected the end of the text");
    return Code::Ok;
  }

 private:
  // What stands here, for errors; characters that cannot be printed by their number.
  Status fail(const char* what) {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at_; ++i) {
      if (text_.data()[i] != '\n') continue;
      ++line;
      start = i + 1;
    }
    char got[32] = "the end of the text";
    if (at_ < text_.size()) {
      const unsigned byte = static_cast<unsigned char>(text_.data()[at_]);
      const bool printable = byte >= 0x20 && byte < 0x7F;
      std::snprintf(got, sizeof got, printable ? "'%c'" : "byte 0x%02x", byte);
    }
    return message_->fail(Code::InvalidArgument, "JSON, line %zu, column %zu: %s, got %s", line,
                          at_ - start + 1, what, got);
  }

  bool next_is(char c) const { return at_ < text_.size() && text_.data()[at_] == c; }

  void skip_space() {
    while (next_is(' ') || next_is('\n') || next_is('\r') || next_is('\t')) ++at_;
  }

  bool take(char c) {
    skip_space();
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  Status any(JsonValue* value, size_t depth) {
    skip_space();
    if (depth > limits_.depth) {
      return message_->fail(Code::InvalidArgument, "JSON nests deeper than %zu", limits_.depth);
    }
    if (++values_ > limits_.values) {
      return message_->fail(Code::InvalidArgument, "JSON has more than %zu values", limits_.values);
    }
    if (at_ == text_.size()) return fail("expected a value");
    switch (text_.data()[at_]) {
      case '{':
        return object(value, depth);
      case '[':
        return array(value, depth);
      case '"':
        return string_value(value);
      case 't':
        return word("true", JsonValue(true), value);
      case 'f':
        return word("false", JsonValue(false), value);
      case 'n':
        return word("null", JsonValue(), value);
      default:
        return number(value);
    }
  }

  Status word(StringView text, JsonValue meaning, JsonValue* value) {
    if (text_.size() - at_ < text.size() || StringView(text_.data() + at_, text.size()) != text) {
      return fail("expected a value");
    }
    at_ += text.size();
    *value = std::move(meaning);
    return Code::Ok;
  }

  Status array(JsonValue* value, size_t depth) {
    ++at_;
    std::vector<JsonValue> items;
    if (!take(']')) {
      do {
        items.emplace_back();
        RL_TRY(any(&items.back(), depth + 1));
      } while (take(','));
      if (!take(']')) return fail("expected ',' or ']' after an item of an array");
    }
    *value = JsonValue::array(std::move(items));
    return Code::Ok;
  }

  Status object(JsonValue* value, size_t depth) {
    ++at_;
    std::vector<JsonMember> members;
    std::unordered_map<std::string, size_t> places;
    if (!take('}')) {
      do {
        std::string key;
        skip_space();
        if (!next_is('"')) return fail("expected the name of a member in '\"'");
        RL_TRY(string(&key));
        if (!take(':')) return fail("expected ':' after the name of a member");
        JsonValue item;
        RL_TRY(any(&item, depth + 1));
        const auto [place, is_new] = places.emplace(key, members.size());
        if (is_new) {
          members.push_back({std::move(key), std::move(item)});
        } else {
          members[place->second].value = std::move(item);
        }
      } while (take(','));
      if (!take('}')) return fail("expected ',' or '}' after a member of an object");
    }
    *value = JsonValue::object(std::move(members));
    return Code::Ok;
  }

  Status string_value(JsonValue* value) {
    std::string text;
    RL_TRY(string(&text));
    *value = JsonValue(std::move(text));
    return Code::Ok;
  }

  Status string(std::string* out) {
    ++at_;
    while (true) {
      const size_t start = at_;
      while (at_ < text_.size() && is_plain(text_.data()[at_])) ++at_;
      out->append(text_.data() + start, at_ - start);
      if (at_ == text_.size()) return fail("expected '\"' at the end of a string");
      const auto byte = static_cast<unsigned char>(text_.data()[at_]);
      if (byte == '"') {
        ++at_;
        return Code::Ok;
      }
      if (byte < 0x20) return fail("expected an escape for a control character in a string");
      RL_TRY(byte == '\\' ? escape(out) : wide(out));
    }
  }

  static bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  }

  Status wide(std::string* out) {
    const Character character = read_utf8(text_.data() + at_, text_.size() - at_);
    if (!character.valid) return fail("expected valid UTF-8");
    out->append(text_.data() + at_, character.bytes);
    at_ += character.bytes;
    return Code::Ok;
  }

  Status escape(std::string* out) {
    ++at_;
    if (at_ == text_.size()) return fail("expected an escaped character");
    constexpr const char* kNames = "\"\\/bfnrt";
    constexpr const char* kMeanings = "\"\\/\b\f\n\r\t";
    const char name = text_.data()[at_];
    for (size_t i = 0; kNames[i] != '\0'; ++i) {
      if (name != kNames[i]) continue;
      out->push_back(kMeanings[i]);
      ++at_;
      return Code::Ok;
    }
    if (name != 'u') return fail("expected one of \"\\/bfnrtu after '\\' in a string");
    ++at_;
    return unicode(out);
  }

  Status unicode(std::string* out) {
    uint32_t code = 0;
    RL_TRY(four_digits(&code));
    if (code >= 0xD800 && code < 0xDC00) {
      uint32_t second = 0;
      if (!next_is('\\')) return fail("expected the second half of a surrogate pair");
      ++at_;
      if (!next_is('u')) return fail("expected the second half of a surrogate pair");
      ++at_;
      RL_TRY(four_digits(&second));
      if (second < 0xDC00 || second > 0xDFFF) {
        return fail("expected the second half of a surrogate pair before this");
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return fail("expected the first half of a surrogate pair before its second half");
    }
    char bytes[4];
    out->append(bytes, write_utf8(code, bytes));
    return Code::Ok;
  }

  Status four_digits(uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_.data()[at_] : ' ';
      const char low = static_cast<char>(c | 0x20);
      const bool letter = low >= 'a' && low <= 'f';
      if (!is_digit(c) && !letter) return fail("expected four hexadecimal digits after \\u");
      *code = *code << 4 | static_cast<uint32_t>(letter ? low - 'a' + 10 : c - '0');
    }
    return Code::Ok;
  }

  bool digits() {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_.data()[at_])) ++at_;
    return at_ != start;
  }

  Status number(JsonValue* value) {
    const size_t start = at_;
    if (next_is('-')) ++at_;
    const bool zero = next_is('0');
    const size_t first = at_;
    if (!digits()) return fail(at_ == start ? "expected a value" : "expected a digit after '-'");
    if (zero && at_ - first > 1) {
      at_ = first + 1;
      return fail("expected no digit after a leading 0");
    }
    bool whole = true;
    if (next_is('.')) {
      whole = false;
      ++at_;
      if (!digits()) return fail("expected a digit after '.'");
    }
    if (next_is('e') || next_is('E')) {
      whole = false;
      ++at_;
      if (next_is('+') || next_is('-')) ++at_;
      if (!digits()) return fail("expected a digit in an exponent");
    }
    std::string text(text_.data() + start, at_ - start);
    int64_t integer = 0;
    if (!whole) {
      *value = JsonValue(read_double(text));
    } else if (read_integer(text, &integer)) {
      *value = JsonValue(integer);
    } else {
      *value = JsonValue::big_integer(std::move(text));
    }
    return Code::Ok;
  }

  StringView text_;
  Message* message_;
  JsonLimits limits_;
  size_t at_ = 0;
  size_t values_ = 0;
};

}  // namespace

Result<JsonValue> parse_json(StringView text, Message* message, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return message->fail(Code::InvalidArgument, "JSON has %zu bytes; at most %zu are read",
                         text.size(), limits.bytes);
  }
  return guard("read the JSON", message, [&]() -> Result<JsonValue> {
    JsonValue value;
    RL_TRY(Parser(text, message, limits).document(&value));
    return value;
  });
}

}  // namespace rushlight::llm
