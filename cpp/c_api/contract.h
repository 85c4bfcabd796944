// The shape contract of a method (docs/file-format.md): names of inputs, ranges of sizes, and sizes
// that are equal. What a program does not say follows from its tensors.
#pragma once

#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/program/program.h"

namespace rushlight::c_api {

struct SizeRange {
  int32_t least = 0;
  int32_t most = 0;
  uint32_t symbol = 0;  // equal in all sizes of a call that have it; 0: none
};

struct ValueContract {
  std::string name;  // empty if the program has none
  std::vector<SizeRange> sizes;
  // Of a scalar: it has the value at export, or is an integer of a range.
  bool is_fixed = true;
  int64_t least = 0;
  int64_t most = 0;
};

struct Contract {
  std::vector<ValueContract> inputs;
  std::vector<ValueContract> outputs;
  uint32_t n_symbols = 0;  // numbers of symbols are at most this

  // Whether an input is one that the method can be called with.
  Status check(size_t input, const MethodMeta& meta, Span<const int32_t> sizes,
               std::vector<int32_t>* symbols, Message* message) const;
};

// Returns InvalidProgram for a contract that contradicts the program.
Result<Contract> read_contract(const MethodMeta& meta, Message* message);

// "input 'x'", or "input 0".
std::string label_of(const Contract& contract, size_t input);

}  // namespace rushlight::c_api
