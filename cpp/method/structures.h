// What a loaded method consists of, and how it lies in the one block of memory that holds it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/events/tracer.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/method/delegate_call.h"
#include "rushlight/program/method_meta.h"

namespace rushlight {

struct Instruction {
  KernelFn fn;          // Kernel
  EValue* const* args;  // Kernel, Delegate; Move: from, to; JumpFalse: the condition; Free
  uint32_t n_args;
  uint32_t target;    // JumpFalse: where to, counted over all chains; Delegate: which
  uint32_t n_inputs;  // Delegate: of its arguments; outputs follow
  InstructionKind kind;
  // Kernel, Delegate: what runs before decides whether the arguments have memory and share it, so
  // they are looked at before each call.
  bool checked;
};

struct InputSlot {
  EValue* value;
  Tensor* tensor;  // the value's tensor at load; a move may have changed the value since
  bool is_set;
};

struct OutputSlot {
  EValue* value;
  Tensor* tensor;   // likewise
  bool needs_data;  // has no memory of its own
};

struct DelegateSlot {
  Backend* backend;
  void* handle;
  bool is_ready;  // to be destroyed with the method
};

// A tensor that a view operator points elsewhere, with what it had at load. Every run starts with
// that: what it was pointed at may have been the caller's, and gone since.
struct ViewSlot {
  EValue* target;
  void* data;
  int64_t capacity;
  bool read_only;
};

struct Structures {
  EValue* values;
  Tensor* tensors;
  int32_t* dims;  // sizes, then strides, of each tensor
  EValue** list_items;
  double* doubles;
  InputSlot* inputs;
  OutputSlot* outputs;
  Instruction* instructions;
  const Kernel** kernels;  // one per instruction; nullptr where there is none
  EValue** args;
  uint32_t* chain_ends;  // index behind the last instruction of each chain, over all chains
  ViewSlot* views;
  DelegateSlot* delegates;
  CompileSpec* specs;
  ArgumentSeal* seals;  // of one call of a delegate
  uint8_t* is_given;    // one per value, in methods with delegates: see count_delegate_inputs()
  uint8_t* constants;   // copies of those that lie misaligned in the program's image
};

// Places everything behind `base` (aligned to Allocator::kAlignment) and returns the bytes it
// takes; SIZE_MAX if that is more than there can be. With base nullptr only the size means
// anything.
size_t lay_out(const PlanSizes& sizes, uint8_t* base, Structures* structures);

}  // namespace rushlight
