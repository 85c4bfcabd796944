// The shape contract of a method (docs/file-format.md): names of inputs, ranges of sizes, and what
// sizes have to do with each other. What a program does not say follows from its tensors.
#pragma once

#include <string>
#include <vector>

#include "rushlight/c_api/contract/expression.h"
#include "rushlight/core/message.h"
#include "rushlight/program/program.h"

namespace rushlight::c_api {

struct SizeRange {
  int64_t least = 0;
  int64_t most = 0;
  uint32_t symbol = 0;   // equal in all sizes of a call that have it; 0: none
  uint32_t derived = 0;  // computed from others, by Contract::derived, from 1; 0: it is not
};

struct ValueContract {
  std::string name;  // empty if the program has none
  std::vector<SizeRange> sizes;
  // Of a scalar: it has the value at export, or is an integer of a range.
  bool is_fixed = true;
  SizeRange range;
};

// A size, or an integer, that is computed from others.
struct Derived {
  size_t input = 0;
  size_t dimension = 0;
  bool is_size = true;
  Expression expression;
};

// What inputs have to do with each other.
struct Relation {
  Expression condition;
  std::string text;  // for the user
};

struct Contract {
  static constexpr int64_t kUnknown = INT64_MIN;

  std::vector<ValueContract> inputs;
  std::vector<ValueContract> outputs;
  uint32_t n_symbols = 0;  // numbers of symbols are at most this
  std::vector<Derived> derived;
  std::vector<Relation> relations;
  std::vector<std::string> texts;  // of all that is checked between inputs, for the user

  // How many values a call keeps: of symbols, and of derived sizes behind them.
  size_t n_values() const { return n_symbols + derived.size(); }

  // Whether an input is one that the method can be called with, by itself and beside those before
  // it. `values` begin as kUnknown.
  Status check(size_t input, const MethodMeta& meta, Span<const int32_t> sizes,
               Span<int64_t> values, Message* message) const;
  Status check_integer(size_t input, const MethodMeta& meta, int64_t value, Span<int64_t> values,
                       Message* message) const;
  // Whether all inputs fit together, when each of them was checked.
  Status check_relations(const MethodMeta& meta, Span<int64_t> values, Message* message) const;

 private:
  Status check_derived(const Derived& one, int64_t value, Span<int64_t> values,
                       Message* message) const;
};

// Returns InvalidProgram for a contract that contradicts the program.
Result<Contract> read_contract(const MethodMeta& meta, Message* message);

// "input 'x'", or "input 0".
std::string label_of(const Contract& contract, size_t input);

}  // namespace rushlight::c_api
