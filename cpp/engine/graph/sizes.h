// Sizes that are known only at run: how the sizes, strides and offsets of a graph's values follow
// from the sizes of its inputs.
#pragma once

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/engine/types/graph_parts.h"

namespace rushlight::engine {

class Sizes {
 public:
  // Checks the expressions and arguments in the parts and keeps pointers to them: they must not
  // move. DelegateInvalidCompatibility if they are not valid.
  Status load(const GraphParts& parts, Allocator& allocator, Message& message);
  // True if nothing depends on the inputs' sizes.
  bool fixed() const { return expressions_.empty(); }

  // True if the inputs have the sizes of the last take().
  bool same(EValue* const* args) const;
  // Takes the inputs' sizes and computes all expressions. InvalidArgument if an input has another
  // rank, sizes beyond its bounds or sizes that do not fit the others', or if an expression has no
  // value.
  Status take(EValue* const* args, Message& message);
  // Makes same() false for the next inputs, whatever their sizes.
  void forget() { taken_ = false; }
  // The sizes of a value; false if its offset is negative.
  bool set(Value& value) const;
  // The value that has the argument's own sizes; nullptr if there is none.
  const Value* own(size_t argument) const;
  // The value of each expression.
  Span<const int64_t> numbers() const { return numbers_; }
  // "for inputs of sizes (2, 3), (3): ", before what the message says.
  void name_inputs(EValue* const* args, Message& message) const;

 private:
  // An input: its limits, and its sizes at the last take().
  struct Input {
    bool is_number = false;
    size_t rank = 0;
    int64_t bounds[kMaxViewRank] = {};
    int64_t sizes[kMaxViewRank] = {};  // or the number itself
  };

  Status check_expression(size_t i, Message& message);
  Status check_value(const Value& value, Message& message) const;
  Status check_argument(size_t i, const GraphParts& parts, Message& message) const;
  bool is_same(const Input& input, const EValue& arg) const;
  Status take_input(size_t i, const EValue& arg, Message& message);
  Status compute(size_t i, Message& message);
  Status check_sizes(size_t i, Message& message) const;

  Span<const Expression> expressions_;
  Span<const Value> values_;
  Span<const int32_t> arguments_;
  Span<Input> inputs_;
  Span<int64_t> numbers_;  // of each expression
  bool taken_ = false;
};

}  // namespace rushlight::engine
