#include "rushlight/llm/grammar/regex/syntax.h"

#include <cstring>
#include <string>
#include <utility>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {

using Kind = RegexNode::Kind;

uint32_t Regex::add(RegexNode node) {
  nodes.push_back(std::move(node));
  return static_cast<uint32_t>(nodes.size() - 1);
}

uint32_t Regex::add_set(CodeSet set) {
  RegexNode node;
  node.kind = Kind::Set;
  node.set = static_cast<uint32_t>(sets.size());
  sets.push_back(std::move(set));
  return add(std::move(node));
}

uint32_t Regex::add_text(StringView text) {
  std::vector<uint32_t> parts;
  for (size_t at = 0; at < text.size();) {
    const Character character = read_utf8(text.data() + at, text.size() - at);
    parts.push_back(add_set({{character.code, character.code}}));
    at += character.bytes;
  }
  return add_list(Kind::Sequence, std::move(parts));
}

uint32_t Regex::add_list(Kind kind, std::vector<uint32_t> parts) {
  if (parts.size() == 1) return parts[0];
  RegexNode node;
  node.kind = parts.empty() && kind == Kind::Sequence ? Kind::Empty : kind;
  node.parts = std::move(parts);
  return add(std::move(node));
}

uint32_t Regex::add_repeat(uint32_t part, uint32_t least, uint32_t most) {
  RegexNode node;
  node.kind = Kind::Repeat;
  node.parts = {part};
  node.least = least;
  node.most = most;
  return add(std::move(node));
}

namespace {

constexpr uint32_t kMaxNesting = 100;
constexpr uint32_t kMaxCount = 1000000000;
constexpr size_t kMaxPattern = 1 << 16;

class Parser {
 public:
  Parser(StringView pattern, Message* message) : pattern_(pattern), message_(message) {}

  Status parse(Regex* regex) {
    regex_ = regex;
    if (pattern_.size() > kMaxPattern) return fail("is longer than 65536 bytes");
    uint32_t whole = 0;
    RL_TRY(choice(0, &whole));
    if (!at_end()) return fail("has a ')' without a '('");
    // The last node is the whole; a choice of one part is that part.
    if (whole + 1 != regex_->nodes.size()) whole = regex_->add_repeat(whole, 1, 1);
    return Code::Ok;
  }

 private:
  bool at_end() const { return at_ >= pattern_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_.data()[at_ + ahead] : '\0';
  }
  bool take(char expected) {
    if (at_end() || peek() != expected) return false;
    ++at_;
    return true;
  }
  Status fail(const char* what) const {
    const StringView shown(pattern_.data(), pattern_.size() < 200 ? pattern_.size() : 200);
    return message_->fail(Code::InvalidArgument, "the regular expression '%.*s' %s (at byte %zu)",
                          shown.len(), shown.data(), what, at_);
  }

  Status choice(uint32_t nesting, uint32_t* out);
  Status sequence(uint32_t nesting, uint32_t* out);
  Status atom(uint32_t nesting, uint32_t* out);
  Status group(uint32_t nesting, uint32_t* out);
  Status repeats(uint32_t* part);
  Status count(uint32_t* out);
  Status bounds(uint32_t* least, uint32_t* most);
  Status read_code(uint32_t* out);
  Status escape(bool in_set, CodeSet* out);
  Status hex_escape(char kind, uint32_t* out);
  Status hex_digits(size_t digits, uint32_t* out);
  Status set(CodeSet* out);
  Status set_member(CodeSet* out);

  StringView pattern_;
  Message* message_;
  Regex* regex_ = nullptr;
  size_t at_ = 0;
};

Status Parser::choice(uint32_t nesting, uint32_t* out) {
  if (nesting > kMaxNesting) return fail("nests groups more than 100 deep");
  std::vector<uint32_t> parts(1);
  RL_TRY(sequence(nesting, &parts[0]));
  while (take('|')) {
    parts.push_back(0);
    RL_TRY(sequence(nesting, &parts.back()));
  }
  *out = regex_->add_list(Kind::Choice, std::move(parts));
  return Code::Ok;
}

Status Parser::sequence(uint32_t nesting, uint32_t* out) {
  std::vector<uint32_t> parts;
  while (!at_end() && peek() != '|' && peek() != ')') {
    uint32_t part = 0;
    RL_TRY(atom(nesting, &part));
    RL_TRY(repeats(&part));
    parts.push_back(part);
  }
  *out = regex_->add_list(Kind::Sequence, std::move(parts));
  return Code::Ok;
}

Status Parser::group(uint32_t nesting, uint32_t* out) {
  if (take('?')) {
    if (peek() == '=' || peek() == '!') return fail("looks ahead, which is not supported");
    if (peek() == '<' && (peek(1) == '=' || peek(1) == '!')) {
      return fail("looks behind, which is not supported");
    }
    const bool named = peek() == '<' || (peek() == 'P' && peek(1) == '<');
    if (named) {
      while (!at_end() && peek() != '>') ++at_;
      if (!take('>')) return fail("has a group whose name does not end");
    } else if (!take(':')) {
      return fail("has flags in a group, which are not supported");
    }
  }
  RL_TRY(choice(nesting + 1, out));
  return take(')') ? Status() : fail("has a '(' without a ')'");
}

Status Parser::atom(uint32_t nesting, uint32_t* out) {
  RegexNode node;
  CodeSet codes;
  switch (peek()) {
    case '(':
      ++at_;
      return group(nesting, out);
    case '[':
      ++at_;
      RL_TRY(set(&codes));
      break;
    case '.':
      ++at_;
      codes = complement(line_end_codes());
      break;
    case '^':
    case '$':
      node.kind = peek() == '^' ? Kind::Begin : Kind::End;
      ++at_;
      *out = regex_->add(node);
      return Code::Ok;
    case '\\':
      ++at_;
      RL_TRY(escape(false, &codes));
      break;
    case '*':
    case '+':
    case '?':
      return fail("repeats nothing: write '\\' before '*', '+' or '?' to match it");
    case '{':
    case '}':
    case ']':
      return fail("has a bare '{', '}' or ']': write '\\' before it to match it");
    default: {
      uint32_t code = 0;
      RL_TRY(read_code(&code));
      codes = {{code, code}};
    }
  }
  *out = regex_->add_set(normalized(std::move(codes)));
  return Code::Ok;
}

Status Parser::count(uint32_t* out) {
  if (peek() < '0' || peek() > '9') return fail("has a count without a number");
  uint64_t number = 0;
  while (peek() >= '0' && peek() <= '9') {
    number = number * 10 + static_cast<uint64_t>(peek() - '0');
    if (number > kMaxCount) return fail("has a count above 1000000000");
    ++at_;
  }
  *out = static_cast<uint32_t>(number);
  return Code::Ok;
}

Status Parser::bounds(uint32_t* least, uint32_t* most) {
  RL_TRY(count(least));
  *most = *least;
  if (take(',')) {
    *most = kUnbounded;
    if (peek() != '}') RL_TRY(count(most));
  }
  if (!take('}')) return fail("has a count that does not end in '}'");
  return *least <= *most ? Status() : fail("has a count whose lower bound is above the upper one");
}

Status Parser::repeats(uint32_t* part) {
  bool counted = false;
  while (!at_end()) {
    uint32_t least = 0, most = kUnbounded;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      RL_TRY(bounds(&least, &most));
    } else {
      return Code::Ok;
    }
    if (counted) return fail("repeats a repetition: put the inner one into (?:...)");
    counted = true;
    *part = regex_->add_repeat(*part, least, most);
    if (peek() == '+') return fail("has a possessive repetition, which is not supported");
    take('?');  // a lazy repetition matches the same texts
  }
  return Code::Ok;
}

Status Parser::read_code(uint32_t* out) {
  const Character character = read_utf8(pattern_.data() + at_, pattern_.size() - at_);
  if (!character.valid) return fail("is not valid UTF-8");
  at_ += character.bytes;
  *out = character.code;
  return Code::Ok;
}

Status Parser::hex_digits(size_t digits, uint32_t* out) {
  uint32_t code = 0;
  for (size_t i = 0; i < digits; ++i, ++at_) {
    const char c = peek();
    const bool number = c >= '0' && c <= '9', small = c >= 'a' && c <= 'f';
    if (!number && !small && !(c >= 'A' && c <= 'F')) return fail("has too few hex digits");
    code = code << 4 | static_cast<uint32_t>(number ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  *out = code;
  return Code::Ok;
}

// \xHH, \uHHHH, \u{H...}; a pair of surrogates is one character.
Status Parser::hex_escape(char kind, uint32_t* out) {
  if (kind == 'x' && peek() != '{') return hex_digits(2, out);
  if (take('{')) {
    size_t digits = 0;
    while (digits < 7 && peek(digits) != '}' && peek(digits) != '\0') ++digits;
    if (digits == 0 || digits > 6) return fail("has a hex escape without 1 to 6 digits");
    RL_TRY(hex_digits(digits, out));
    if (!take('}')) return fail("has a hex escape that does not end in '}'");
  } else {
    RL_TRY(hex_digits(4, out));
    if (*out >= 0xD800 && *out < 0xDC00 && peek() == '\\' && peek(1) == 'u') {
      at_ += 2;
      uint32_t low = 0;
      RL_TRY(hex_digits(4, &low));
      if (low < 0xDC00 || low > 0xDFFF) return fail("has half of a pair of surrogates");
      *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
    }
  }
  const bool surrogate = *out >= kSurrogates.low && *out <= kSurrogates.high;
  return surrogate || *out > kLastCode ? fail("names a code that is no character") : Status();
}

// The set of \d, \W and their like; false for another letter.
bool class_of(char letter, CodeSet* out) {
  switch (letter | 0x20) {
    case 'd':
      *out = digit_codes();
      break;
    case 'w':
      *out = word_codes();
      break;
    case 's':
      *out = space_codes();
      break;
    default:
      return false;
  }
  if (letter < 'a') *out = complement(*out);
  return true;
}

// The character of a letter after '\\', or 0.
char control_of(char letter) {
  static const char letters[] = "nrtfv", controls[] = "\n\r\t\f\v";
  const char* at = std::strchr(letters, letter);
  return at == nullptr || letter == '\0' ? '\0' : controls[at - letters];
}

Status Parser::escape(bool in_set, CodeSet* out) {
  if (at_end()) return fail("ends in '\\'");
  const char c = peek();
  uint32_t code = 0;
  if (static_cast<unsigned char>(c) >= 0x80) {
    RL_TRY(read_code(&code));
    *out = {{code, code}};
    return Code::Ok;
  }
  ++at_;
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (is_letter && class_of(c, out)) return Code::Ok;
  if (control_of(c) != '\0') {
    code = static_cast<uint32_t>(control_of(c));
  } else if (c == 'x' || c == 'u') {
    RL_TRY(hex_escape(c, &code));
  } else if (c == 'b' && in_set) {
    code = '\b';
  } else if (c == 'b' || c == 'B') {
    return fail("has \\b: word boundaries are not supported");
  } else if (c == 'p' || c == 'P') {
    return fail("has \\p: classes of Unicode are not supported; list the ranges of characters");
  } else if (c == 'k' || (c >= '1' && c <= '9')) {
    return fail("refers back to a group, which is not supported");
  } else if (c == '0' && peek() >= '0' && peek() <= '9') {
    return fail("has an octal escape: write \\xHH");
  } else if (is_letter) {
    return fail("has an unknown escape: '\\' before a letter that needs none");
  } else if (c != '0') {
    code = static_cast<uint32_t>(c);
  }
  *out = {{code, code}};
  return Code::Ok;
}

Status Parser::set_member(CodeSet* out) {
  if (peek() == '[') {
    return fail("has '[' inside of '[...]', whose meaning differs between languages: write '\\['");
  }
  if ((peek() == '&' || peek() == '-' || peek() == '~') && peek(1) == peek()) {
    return fail("has an operation on sets inside of '[...]', which is not supported");
  }
  if (take('\\')) return escape(true, out);
  uint32_t code = 0;
  RL_TRY(read_code(&code));
  *out = {{code, code}};
  return Code::Ok;
}

Status Parser::set(CodeSet* out) {
  const bool negated = take('^');
  if (peek() == ']') return fail("has an empty '[]': write '\\]' to match ']'");
  CodeSet ranges;
  while (peek() != ']') {
    if (at_end()) return fail("has a '[' without a ']'");
    CodeSet first;
    RL_TRY(set_member(&first));
    const bool single = first.size() == 1 && first[0].low == first[0].high;
    if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
      ++at_;
      CodeSet last;
      RL_TRY(set_member(&last));
      if (!single || last.size() != 1 || last[0].low != last[0].high) {
        return fail("has a range with a class at one end");
      }
      if (last[0].low < first[0].low) return fail("has a range whose ends are exchanged");
      first[0].high = last[0].low;
    }
    ranges.insert(ranges.end(), first.begin(), first.end());
  }
  ++at_;
  *out = normalized(std::move(ranges));
  if (negated) *out = complement(*out);
  return Code::Ok;
}

}  // namespace

Result<Regex> parse_regex(StringView pattern, Message* message) {
  Regex regex;
  RL_TRY(Parser(pattern, message).parse(&regex));
  return regex;
}

}  // namespace rushlight::llm::grammar
