// A payload of the demo backend (demo_backend.h has its grammar), parsed and checked.
#pragma once

#include "rushlight/core/status.h"
#include "rushlight/delegate/backend.h"

namespace rushlight::demo {

constexpr size_t kMaxDims = 4;
constexpr size_t kMaxOperands = 3;

enum class Op : uint8_t { Sin, Add, Mul, Mm, Linear };

// A value while the program runs; its memory is an argument's, the program's own, or named data.
struct Value {
  const float* data = nullptr;
  int32_t sizes[kMaxDims] = {0};
  uint8_t rank = 0;
  int64_t numel = 0;
};

struct Instruction {
  Op op = Op::Sin;
  uint32_t operands[kMaxOperands] = {0};
  uint32_t n_operands = 0;
  uint32_t result = 0;
  float* memory = nullptr;
  int64_t capacity = 0;  // elements
};

struct Program {
  Value* values = nullptr;
  size_t n_values = 0;
  size_t n_inputs = 0;
  Instruction* instructions = nullptr;
  size_t n_instructions = 0;
  uint32_t* outputs = nullptr;
  size_t n_outputs = 0;
  int64_t fail_at = -1;
};

// Parses `init.payload`. DelegateInvalidCompatibility, with the line of text, if it is none of this
// grammar or names a value before it is there; DelegateMemoryAllocationFailed if the allocator has
// not enough. A fault in an instruction has its number as the place. Named data is used where it
// lies.
Status parse(BackendInit& init, Program* program);

}  // namespace rushlight::demo
