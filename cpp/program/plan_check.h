// The check of one method's plan: every index, size, offset and kind in it, so that the loader of
// methods reads it without a test.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/program/method_meta.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

// `program` has been verified. Ok with `sizes` filled, or what is wrong and where in `message`.
Status check_plan(const Program& program, fb::ExecutionPlan plan, PlanSizes* sizes,
                  Message& message);

// The operator that gives its last argument the memory of its first, executorch_prim::et_view.
bool is_view_operator(fb::Operator op);

// The kind of value that a union member stands for. Only of checked plans.
Tag tag_of(fb::KernelTypes type);

// `bytes` rounded up to what every copied constant starts at.
constexpr size_t kCopyAlignment = 16;
inline size_t padded_copy(size_t bytes) {
  return (bytes + kCopyAlignment - 1) & ~(kCopyAlignment - 1);
}
inline bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % element_alignment(dtype) == 0;
}

// Sizes as the file has them, copied out.
inline void copy_sizes(fb::Vector<int32_t> from, int32_t* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = from[i];
}

// Where the bytes of a checked tensor come from.
inline bool is_external(fb::Tensor tensor) {
  return tensor.extra_tensor_info().location() == fb::TensorDataLocation::EXTERNAL;
}
inline bool is_planned(fb::Tensor tensor) { return tensor.has_allocation_info(); }
// Bytes that stand in a file: of a constant, or the first content of a planned tensor.
inline bool has_file_data(fb::Tensor tensor) {
  return is_external(tensor) || tensor.data_buffer_idx() != 0;
}
inline bool is_constant(fb::Tensor tensor) { return !is_planned(tensor) && has_file_data(tensor); }
inline uint64_t arena_offset(fb::AllocationDetails at) {
  return at.memory_offset_low() | static_cast<uint64_t>(at.memory_offset_high()) << 32;
}

}  // namespace rushlight
