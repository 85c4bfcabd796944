// The parts of a loaded method, and their layout in the single block of memory that holds them.
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
  uint32_t target;    // JumpFalse: target, over all chains; Delegate: its index
  uint32_t n_inputs;  // Delegate: number of inputs; outputs follow
  InstructionKind kind;
  // Kernel, Delegate: earlier instructions decide whether the arguments have memory and share it,
  // so the arguments are checked before each call.
  bool checked;
  // Kernel: has no tensors, so that it ends at once: nothing is checked before it.
  bool is_scalar;
};

struct InputSlot {
  EValue* value;
  Tensor* tensor;  // the value's tensor at load; a move may change the value later
  Tag tag;         // at load; a run may change that of a scalar
  bool is_set;
};

struct OutputSlot {
  EValue* value;
  Tensor* tensor;   // the same
  bool needs_data;  // has no memory of its own
};

struct DelegateSlot {
  Backend* backend;
  void* handle;
  bool is_ready;  // is destroyed with the method
};

// A tensor that a view operator redirects, with its memory at load. Every run starts with that
// memory, since the memory of an earlier view may have been the caller's and may be freed.
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
  const Kernel** kernels;  // one for each instruction; nullptr if there is none
  EValue** args;
  uint32_t* chain_ends;  // index after the last instruction of each chain, over all chains
  ViewSlot* views;
  DelegateSlot* delegates;
  CompileSpec* specs;
  ArgumentSeal* seals;  // for one call of a delegate
  uint8_t* is_given;    // one per value, in methods with delegates: see count_delegate_inputs()
  uint8_t* constants;   // copies of those that are misaligned in the program's image
};

// Assigns memory to everything, starting at `base`, which must be aligned to Allocator::kAlignment.
// Returns the number of bytes, or SIZE_MAX if that overflows. If base is nullptr, only the returned
// size is meaningful.
size_t lay_out(const PlanSizes& sizes, uint8_t* base, Structures* structures);

}  // namespace rushlight
