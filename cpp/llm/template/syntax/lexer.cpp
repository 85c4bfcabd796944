#include "rushlight/llm/template/syntax/lexer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/llm/json/number.h"
#include "rushlight/llm/template/syntax/literal.h"
#include "rushlight/llm/template/values/characters.h"

namespace rushlight::llm {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  const char low = static_cast<char>(c | 0x20);
  return is_digit(c) || (low >= 'a' && low <= 'z') || c == '_';
}

// With "\n" for every line break, and without the last one.
std::string with_plain_lines(StringView source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source.data()[i];
    const bool pair = c == '\r' && i + 1 < source.size() && source.data()[i + 1] == '\n';
    if (!pair) text.push_back(c == '\r' ? '\n' : c);
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, std::vector<Token>* tokens, Message* message)
      : source_(std::move(source)), tokens_(tokens), message_(message) {}

  Status read() {
    while (at_ < source_.size()) RL_TRY(part());
    add(TokenType::End, "");
    return Code::Ok;
  }

 private:
  Status fail(const char* what) {
    return message_->fail(Code::InvalidArgument, "chat template, line %u: %s", line_, what);
  }

  bool is_here(const char* text, size_t at) const {
    return source_.compare(at, std::strlen(text), text) == 0;
  }
  char char_at(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  Token& add(TokenType type, std::string text) {
    tokens_->emplace_back();
    tokens_->back().type = type;
    tokens_->back().line = line_;
    tokens_->back().text = std::move(text);
    return tokens_->back();
  }

  // Walks to `end`, counting lines.
  void walk(size_t end) {
    line_ +=
        static_cast<uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  size_t after_space(size_t at) const {
    return at + stripped({source_.data() + at, source_.size() - at}, true, false).begin;
  }

  // Adds the text up to a tag at `end`, whose sign says what to do with the white space before it.
  void add_data(size_t end, char sign, bool is_print) {
    size_t stop = end;
    if (sign == '-') {
      stop = at_ + stripped({source_.data() + at_, end - at_}, false, true).end;
    } else if (sign != '+' && !is_print) {
      const size_t newline = end > at_ ? source_.rfind('\n', end - 1) : std::string::npos;
      const bool has_line = newline != std::string::npos && newline >= at_;
      const size_t start = has_line ? newline + 1 : at_;
      if ((has_line || line_starts_) && after_space(start) >= end) stop = start;
    }
    if (stop > at_) add(TokenType::Data, source_.substr(at_, stop - at_));
    walk(end);
  }

  char sign_at(size_t at) const {
    return char_at(at) == '-' || char_at(at) == '+' ? source_[at] : '\0';
  }

  // Text up to the next tag, and that tag.
  Status part() {
    size_t tag = source_.find('{', at_);
    while (tag != std::string::npos &&
           !(char_at(tag + 1) == '{' || char_at(tag + 1) == '%' || char_at(tag + 1) == '#')) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string::npos) {
      add(TokenType::Data, source_.substr(at_));
      walk(source_.size());
      return Code::Ok;
    }
    const char type = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    add_data(tag, sign, type == '{');
    size_t raw_end = 0;
    if (type == '%' && is_raw(tag + 2, &raw_end)) return raw(raw_end);
    walk(tag + (sign != '\0' ? 3 : 2));
    if (type == '#') return comment();
    return tag_tokens(type == '{');
  }

  // Whether "raw" and the end of a block stand here.
  bool is_raw(size_t at, size_t* end) const {
    at = after_space(at + (sign_at(at) != '\0' ? 1 : 0));
    if (!is_here("raw", at)) return false;
    at = after_space(at + 3);
    const bool strips = is_here("-%}", at);
    if (!strips && !is_here("%}", at)) return false;
    *end = strips ? after_space(at + 3) : at + 2;
    return true;
  }

  Status raw(size_t start) {
    walk(start);
    line_starts_ = start > 0 && source_[start - 1] == '\n';
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      const size_t word = after_space(tag + (sign != '\0' ? 3 : 2));
      if (!is_here("endraw", word)) continue;
      const size_t close = after_space(word + 6);
      size_t end = 0;
      if (!block_ends(close, &end)) continue;
      add_data(tag, sign, false);
      end_tag(end);
      return Code::Ok;
    }
    if (at_ == source_.size()) return Code::Ok;  // nothing is missing, as Jinja has it
    return fail("{% raw %} has no {% endraw %}");
  }

  bool block_ends(size_t at, size_t* end) const {
    if (is_here("+%}", at)) {
      *end = at + 3;
    } else if (is_here("-%}", at)) {
      *end = after_space(at + 3);
    } else if (is_here("%}", at)) {
      *end = at + 2 + (char_at(at + 2) == '\n' ? 1 : 0);
    } else {
      return false;
    }
    return true;
  }

  void end_tag(size_t end) {
    walk(end);
    line_starts_ = end > 0 && source_[end - 1] == '\n';
  }

  Status comment() {
    const size_t end = source_.find("#}", at_);
    if (at_ == source_.size()) return Code::Ok;  // nothing is missing, as Jinja has it
    if (end == std::string::npos) return fail("a comment has no '#}' at its end");
    const char sign = end > at_ ? sign_at(end - 1) : '\0';
    size_t stop = end + 2;
    if (sign == '-') {
      stop = after_space(stop);
    } else if (sign != '+' && char_at(stop) == '\n') {
      ++stop;
    }
    end_tag(stop);
    return Code::Ok;
  }

  bool print_ends(size_t at, size_t* end) const {
    const bool strips = is_here("-}}", at);
    if (!strips && !is_here("}}", at)) return false;
    *end = strips ? after_space(at + 3) : at + 2;
    return true;
  }

  Status tag_tokens(bool is_print) {
    add(is_print ? TokenType::PrintBegin : TokenType::BlockBegin, "");
    std::string open;  // the brackets that are open
    while (true) {
      walk(after_space(at_));
      if (at_ == source_.size()) return fail(is_print ? "'{{' has no '}}'" : "'{%' has no '%}'");
      size_t end = 0;
      if (open.empty() && (is_print ? print_ends(at_, &end) : block_ends(at_, &end))) {
        add(is_print ? TokenType::PrintEnd : TokenType::BlockEnd, "");
        end_tag(end);
        return Code::Ok;
      }
      const char c = source_[at_];
      if (is_digit(c)) {
        RL_TRY(number());
      } else if (is_word(c)) {
        name();
      } else if (c == '\'' || c == '"') {
        RL_TRY(string(c));
      } else {
        RL_TRY(operator_sign(&open));
      }
    }
  }

  void name() {
    size_t end = at_;
    while (is_word(char_at(end))) ++end;
    add(TokenType::Name, source_.substr(at_, end - at_));
    at_ = end;
  }

  Status string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fail("a string has no quotation mark at its end");
    std::string text;
    const char* fault = read_literal({source_.data() + at_ + 1, end - at_ - 1}, &text);
    if (fault != nullptr) return fail(fault);
    add(TokenType::String, std::move(text));
    walk(end + 1);
    return Code::Ok;
  }

  // Digits with '_' between them, without these; empty if there are none.
  std::string digits(size_t* at) const {
    std::string text;
    while (is_digit(char_at(*at)) ||
           (!text.empty() && char_at(*at) == '_' && is_digit(char_at(*at + 1)))) {
      if (source_[*at] != '_') text.push_back(source_[*at]);
      ++*at;
    }
    return text;
  }

  Status number() {
    if (source_[at_] == '0' && std::strchr("xXoObB", char_at(at_ + 1)) != nullptr &&
        char_at(at_ + 1) != '\0') {
      return fail("numbers to the base 2, 8 or 16 are not supported");
    }
    size_t end = at_;
    std::string text = digits(&end);
    const size_t whole_end = end;
    bool is_float = false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && char_at(end) == '.' && is_digit(char_at(end + 1))) {
      ++end;
      text += '.' + digits(&end);
      is_float = true;
    }
    const size_t sign = (char_at(end + 1) == '+' || char_at(end + 1) == '-') ? 1 : 0;
    if (!after_dot && (char_at(end) | 0x20) == 'e' && is_digit(char_at(end + 1 + sign))) {
      text += source_.substr(end, 1 + sign);
      end += 1 + sign;
      text += digits(&end);
      is_float = true;
    }
    if (is_float) {
      add(TokenType::Float, text).number = read_double(text);
      at_ = end;
      return Code::Ok;
    }
    if (text[0] == '0' && text.find_first_not_of('0') != std::string::npos) {
      return fail("a number begins with 0");
    }
    int64_t integer = 0;
    if (!read_integer(text, &integer)) return fail("an integer is beyond 64 bits");
    add(TokenType::Integer, text).integer = integer;
    at_ = whole_end;
    return Code::Ok;
  }

  Status operator_sign(std::string* open) {
    constexpr const char* kSigns[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const char* sign : kSigns) {
      if (!is_here(sign, at_)) continue;
      const char c = sign[0];
      if (c == '(' || c == '[' || c == '{') {
        open->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      } else if (c == ')' || c == ']' || c == '}') {
        if (open->empty() || open->back() != c) return fail("brackets do not match");
        open->pop_back();
      }
      add(TokenType::Operator, sign);
      at_ += std::strlen(sign);
      return Code::Ok;
    }
    return message_->fail(Code::InvalidArgument, "chat template, line %u: unexpected character %s",
                          line_, printable().c_str());
  }

  std::string printable() const {
    const auto byte = static_cast<unsigned char>(source_[at_]);
    if (byte >= 0x20 && byte < 0x7F) return {'\'', source_[at_], '\''};
    char text[16];
    std::snprintf(text, sizeof text, "0x%02x", byte);
    return text;
  }

  std::string source_;
  std::vector<Token>* tokens_;
  Message* message_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;  // whether what was read last ended a line
};

}  // namespace

Status read_tokens(StringView source, std::vector<Token>* tokens, Message* message) {
  return Lexer(with_plain_lines(source), tokens, message).read();
}

}  // namespace rushlight::llm
