// Arithmetic over symbolic sizes, as shape contracts have it (docs/file-format.md): numbers,
// symbols, the operators and comparisons of Python, `and or not`, `a if b else c`, and the
// functions that torch writes into guards. It is read once, and computed for each call without
// taking memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rushlight/c_api/contract/arithmetic.h"
#include "rushlight/core/span.h"

namespace rushlight::c_api {

class Expression {
 public:
  // False if `text` is no expression of this kind. `number_of` gives the number of a symbol, from
  // 0.
  bool read(const std::string& text, const std::function<uint32_t(const std::string&)>& number_of);

  const std::string& text() const { return text_; }
  // The numbers of its symbols, each once.
  const std::vector<uint32_t>& symbols() const { return symbols_; }

  // Computes it for the values of symbols, by their numbers. False if it has no value: a division
  // by zero, or a number beyond 64 bits.
  bool compute(Span<const int64_t> values, Number* value) const;

 private:
  friend class ExpressionReader;

  enum class Kind : uint8_t { Constant, Symbol, Unary, Binary, Compare, And, Or, If, Call };
  // An operation on nodes before it, `first` to `first + count` of operands_.
  struct Node {
    Kind kind = Kind::Constant;
    uint8_t what = 0;  // the operator, or the function
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t symbol = 0;
    Number constant;
  };

  bool compute(uint32_t node, Span<const int64_t> values, Number* value) const;
  bool compute_call(const Node& node, Span<const int64_t> values, Number* value) const;

  std::string text_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> operands_;
  std::vector<uint8_t> comparisons_;  // those of a chain, behind `what`
  std::vector<uint32_t> symbols_;
  uint32_t root_ = 0;
};

}  // namespace rushlight::c_api
