#include "rushlight/c_api/contract/expression.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace rushlight::c_api {
namespace {

constexpr size_t kMaxLength = 4000;
constexpr size_t kMaxNodes = 1000;
constexpr int kMaxDepth = 100;

bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Reads by descent, one function for each of Python's levels of precedence. Each gives the number
// of a node, or kNone.
class ExpressionReader {
 public:
  using Kind = Expression::Kind;
  static constexpr uint32_t kNone = UINT32_MAX;

  ExpressionReader(Expression* made, const std::function<uint32_t(const std::string&)>& number_of)
      : made_(*made), number_of_(number_of), at_(made->text_.c_str()) {}

  bool read() {
    made_.root_ = choice();
    skip();
    return made_.root_ != kNone && *at_ == '\0' && made_.nodes_.size() <= kMaxNodes;
  }

 private:
  void skip() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\n') ++at_;
  }
  bool take(const char* token) {
    skip();
    const size_t length = std::strlen(token);
    if (std::strncmp(at_, token, length) != 0) return false;
    const char next = at_[length];
    if (is_name_start(token[0]) && (is_name_start(next) || is_digit(next))) return false;
    at_ += length;
    return true;
  }
  uint32_t add(Kind kind, uint8_t what, std::initializer_list<uint32_t> operands) {
    return add(kind, what, std::vector<uint32_t>(operands));
  }
  uint32_t add(Kind kind, uint8_t what, const std::vector<uint32_t>& operands) {
    if (std::find(operands.begin(), operands.end(), kNone) != operands.end()) return kNone;
    Expression::Node node;
    node.kind = kind;
    node.what = what;
    node.first = static_cast<uint32_t>(made_.operands_.size());
    node.count = static_cast<uint32_t>(operands.size());
    made_.operands_.insert(made_.operands_.end(), operands.begin(), operands.end());
    return push(node);
  }
  uint32_t push(const Expression::Node& node) {
    made_.nodes_.push_back(node);
    return static_cast<uint32_t>(made_.nodes_.size() - 1);
  }

  uint32_t choice() {
    if (++depth_ > kMaxDepth) return kNone;
    uint32_t yes = any();
    if (yes != kNone && take("if")) {
      const uint32_t test = any();
      yes = test != kNone && take("else") ? add(Kind::If, 0, {test, yes, choice()}) : kNone;
    }
    --depth_;
    return yes;
  }
  uint32_t any() { return joined("or", Kind::Or, &ExpressionReader::every); }
  uint32_t every() { return joined("and", Kind::And, &ExpressionReader::negation); }
  uint32_t joined(const char* word, Kind kind, uint32_t (ExpressionReader::*next)()) {
    std::vector<uint32_t> parts = {(this->*next)()};
    while (parts.back() != kNone && take(word)) parts.push_back((this->*next)());
    return parts.size() == 1 ? parts[0] : add(kind, 0, parts);
  }
  uint32_t negation() {
    if (!take("not")) return comparison();
    if (++depth_ > kMaxDepth) return kNone;
    const uint32_t made = add(Kind::Unary, kNot, {negation()});
    --depth_;
    return made;
  }
  uint32_t comparison() {
    std::vector<uint32_t> parts = {levels(0)};
    std::vector<uint8_t> signs;
    while (parts.back() != kNone) {
      const int sign = comparison_sign();
      if (sign < 0) break;
      signs.push_back(static_cast<uint8_t>(sign));
      parts.push_back(levels(0));
    }
    if (signs.empty()) return parts[0];
    const uint32_t made = add(Kind::Compare, 0, parts);
    if (made == kNone) return kNone;
    made_.nodes_[made].symbol = static_cast<uint32_t>(made_.comparisons_.size());
    made_.comparisons_.insert(made_.comparisons_.end(), signs.begin(), signs.end());
    return made;
  }
  int comparison_sign() {
    static constexpr std::pair<const char*, Operator> kSigns[] = {
        {"==", kEqual},        {"!=", kNotEqual}, {"<=", kLessEqual},
        {">=", kGreaterEqual}, {"<", kLess},      {">", kGreater}};
    for (const auto& [token, sign] : kSigns) {
      if (take(token)) return sign;
    }
    return -1;
  }
  // Operators that join from left to right, the loosest level first.
  uint32_t levels(size_t level) {
    struct Sign {
      const char* token;
      Operator what;
      size_t level;
    };
    static constexpr Sign kSigns[] = {
        {"|", kBitOr, 0},  {"^", kBitXor, 1},   {"&", kBitAnd, 2},
        {"+", kAdd, 3},    {"-", kSubtract, 3}, {"//", kFloorDivide, 4},
        {"/", kDivide, 4}, {"%", kModulo, 4},   {"*", kMultiply, 4}};
    if (level == 5) return sign();
    uint32_t left = levels(level + 1);
    while (left != kNone) {
      const Sign* taken = nullptr;
      for (const Sign& one : kSigns) {
        if (one.level == level && taken == nullptr && take(one.token)) taken = &one;
      }
      if (taken == nullptr) break;
      left = add(Kind::Binary, taken->what, {left, levels(level + 1)});
    }
    return left;
  }
  uint32_t sign() {
    const bool minus = take("-");
    if (!minus && !take("+")) return raised();
    if (++depth_ > kMaxDepth) return kNone;
    const uint32_t made = add(Kind::Unary, minus ? kNegate : kPlus, {sign()});
    --depth_;
    return made;
  }
  uint32_t raised() {
    const uint32_t base = atom();
    return base != kNone && take("**") ? add(Kind::Binary, kPower, {base, sign()}) : base;
  }
  uint32_t atom() {
    skip();
    if (take("(")) {
      const uint32_t inner = choice();
      return take(")") ? inner : kNone;
    }
    if (is_digit(*at_) || *at_ == '.') return constant();
    return is_name_start(*at_) ? name() : kNone;
  }
  uint32_t constant() {
    Expression::Node node;
    char* end = nullptr;
    const char* p = at_;
    while (is_digit(*p)) ++p;
    if (*p == '.' || *p == 'e' || *p == 'E') {
      node.constant = {false, 0, std::strtod(at_, &end)};
    } else {
      errno = 0;
      node.constant = {true, std::strtoll(at_, &end, 10), 0};
      if (errno != 0) return kNone;
    }
    if (end == at_ || is_name_start(*end)) return kNone;
    at_ = end;
    return push(node);
  }
  uint32_t name() {
    const char* begin = at_;
    while (is_name_start(*at_) || is_digit(*at_) || *at_ == '.') ++at_;
    const std::string text(begin, at_);
    if (text == "True" || text == "False") {
      Expression::Node node;
      node.constant = {true, text == "True", 0};
      return push(node);
    }
    for (const char* word : {"and", "or", "not", "if", "else"}) {
      if (text == word) return kNone;
    }
    if (take("(")) return call(text);
    if (text.find('.') != std::string::npos) return kNone;
    Expression::Node node;
    node.kind = Kind::Symbol;
    node.symbol = number_of_(text);
    std::vector<uint32_t>& known = made_.symbols_;
    if (std::find(known.begin(), known.end(), node.symbol) == known.end()) {
      known.push_back(node.symbol);
    }
    return push(node);
  }
  uint32_t call(const std::string& name) {
    const Span<const Function> known = functions();
    const auto* function = std::find_if(known.begin(), known.end(),
                                        [&](const Function& one) { return name == one.name; });
    if (function == known.end()) return kNone;
    std::vector<uint32_t> arguments;
    do {
      arguments.push_back(choice());
    } while (arguments.back() != kNone && take(","));
    if (!take(")") || arguments.size() < function->least ||
        (function->most != 0 && arguments.size() > function->most)) {
      return kNone;
    }
    return add(Kind::Call, static_cast<uint8_t>(function - known.begin()), arguments);
  }

  Expression& made_;
  const std::function<uint32_t(const std::string&)>& number_of_;
  const char* at_;
  int depth_ = 0;
};

bool Expression::read(const std::string& text,
                      const std::function<uint32_t(const std::string&)>& number_of) {
  if (text.size() > kMaxLength) return false;
  text_ = text;
  return ExpressionReader(this, number_of).read();
}

bool Expression::compute(Span<const int64_t> values, Number* value) const {
  return compute(root_, values, value);
}

bool Expression::compute(uint32_t at, Span<const int64_t> values, Number* value) const {
  const Node& node = nodes_[at];
  const uint32_t* operands = operands_.data() + node.first;
  Number a, b;
  switch (node.kind) {
    case Kind::Constant:
      *value = node.constant;
      return true;
    case Kind::Symbol:
      return whole(values[node.symbol], value);
    case Kind::Unary:
      if (!compute(operands[0], values, &a)) return false;
      if (node.what == kNot) return whole(a.is_true() ? 0 : 1, value);
      if (node.what == kNegate) return compute_binary(kSubtract, Number(), a, value);
      *value = a;
      return true;
    case Kind::Binary:
      return compute(operands[0], values, &a) && compute(operands[1], values, &b) &&
             compute_binary(node.what, a, b, value);
    case Kind::Compare:
      if (!compute(operands[0], values, &a)) return false;
      for (uint32_t i = 1; i < node.count; ++i) {
        if (!compute(operands[i], values, &b)) return false;
        if (!holds(comparisons_[node.symbol + i - 1], a, b)) return whole(0, value);
        a = b;
      }
      return whole(1, value);
    case Kind::And:
    case Kind::Or:
      for (uint32_t i = 0; i < node.count; ++i) {
        if (!compute(operands[i], values, &a)) return false;
        if (a.is_true() == (node.kind == Kind::Or)) break;
      }
      return whole(a.is_true() ? 1 : 0, value);
    case Kind::If:
      return compute(operands[0], values, &a) &&
             compute(operands[a.is_true() ? 1 : 2], values, value);
    case Kind::Call:
      return compute_call(node, values, value);
  }
  return false;
}

bool Expression::compute_call(const Node& node, Span<const int64_t> values, Number* value) const {
  const Function& function = functions()[node.what];
  const uint32_t* operands = operands_.data() + node.first;
  Number a, b;
  if (!compute(operands[0], values, &a)) return false;
  if (function.what == kMax || function.what == kMin) {
    for (uint32_t i = 1; i < node.count; ++i) {
      if (!compute(operands[i], values, &b)) return false;
      const int sign = order(b, a);
      if (function.what == kMax ? sign > 0 : sign < 0) a = b;
    }
    *value = a;
    return true;
  }
  if (node.count == 2) {
    if (!compute(operands[1], values, &b)) return false;
    if (function.what == kEqual || function.what == kNotEqual) {
      return whole(holds(function.what, a, b) ? 1 : 0, value);
    }
    return compute_binary(function.what, a, b, value);
  }
  if (function.what == kFloat) return real(a.real(), value);
  if (function.what == kReal) return real(function.real(a.real()), value);
  if (function.what == kAbs) {
    const bool is_negative = a.is_whole ? a.i < 0 : a.d < 0;
    if (is_negative) return compute_binary(kSubtract, Number(), a, value);
    *value = a;
    return true;
  }
  if (a.is_whole) return whole(a.i, value);
  const double rounded = function.real(a.d);
  constexpr double kMost = 9.2e18;
  return std::fabs(rounded) < kMost && whole(static_cast<int64_t>(rounded), value);
}

}  // namespace rushlight::c_api
