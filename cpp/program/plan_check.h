// Checks one method's plan: every index, size, offset and type in it, so that the loader of methods
// can read it without checks.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/program/method_meta.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

// `program` must have been verified. Returns Ok and fills `sizes`, or writes the error and its
// place to `message`.
Status check_plan(const Program& program, fb::ExecutionPlan plan, PlanSizes* sizes,
                  Message& message);

// True for executorch_prim::et_view, which gives its last argument the memory of its first.
bool is_view_operator(fb::Operator op);

// The tag for a union member of a checked plan.
Tag tag_of(fb::KernelTypes type);

// The alignment of copied constants. `bytes` are rounded up to a multiple of it.
constexpr size_t kCopyAlignment = 16;
inline size_t padded_copy(size_t bytes) {
  return (bytes + kCopyAlignment - 1) & ~(kCopyAlignment - 1);
}
inline bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % element_alignment(dtype) == 0;
}

// Copies sizes out of the file.
inline void copy_sizes(fb::Vector<int32_t> from, int32_t* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

// True if the bytes of a checked tensor are in a data file.
inline bool is_external(fb::Tensor tensor) {
  return tensor.extra_tensor_info().location() == fb::TensorDataLocation::EXTERNAL;
}
inline bool is_planned(fb::Tensor tensor) { return tensor.has_allocation_info(); }
// True if a file has bytes for the tensor: of a constant, or the initial content of a planned
// tensor.
inline bool has_file_data(fb::Tensor tensor) {
  return is_external(tensor) || tensor.data_buffer_idx() != 0;
}
inline bool is_constant(fb::Tensor tensor) { return !is_planned(tensor) && has_file_data(tensor); }
inline uint64_t arena_offset(fb::AllocationDetails at) {
  return at.memory_offset_low() | static_cast<uint64_t>(at.memory_offset_high()) << 32;
}

}  // namespace rushlight
