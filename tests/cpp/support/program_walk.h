// Reads all of a verified program through its views, so that a sanitizer sees what the verifier
// missed. The returned number has no meaning; it keeps the reads from being optimised away.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/program/program_fb.h"

namespace rushlight {
namespace test {

inline uint64_t sum(StringView text) {
  uint64_t total = text.size();
  for (size_t i = 0; i <= text.size(); ++i) total += static_cast<uint8_t>(text.data()[i]);
  return total;
}

template <typename T>
inline uint64_t sum(fb::Vector<T> numbers) {
  uint64_t total = numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) total += numbers[i] != T{} ? 1 : 0;
  return total;
}

inline uint64_t sum(fb::Tensor tensor) {
  uint64_t total = sum(tensor.sizes()) + sum(tensor.dim_order()) + tensor.data_buffer_idx();
  total += static_cast<uint64_t>(tensor.scalar_type()) + (tensor.requires_grad() ? 1u : 0u);
  total += tensor.allocation_info().memory_id() + tensor.allocation_info().memory_offset_low();
  total += static_cast<uint64_t>(tensor.storage_offset()) + static_cast<uint64_t>(tensor.layout());
  total += sum(tensor.extra_tensor_info().fully_qualified_name());
  return total + tensor.extra_tensor_info().mutable_data_segments_idx();
}

inline uint64_t sum(fb::EValue value) {
  uint64_t total = static_cast<uint64_t>(value.val_type()) + sum(value.val_as_Tensor());
  total += static_cast<uint64_t>(value.val_as_Int().int_val());
  total += value.val_as_Bool().bool_val() ? 1u : 0u;
  total += value.val_as_Double().double_val() > 0 ? 1u : 0u;
  total += sum(value.val_as_String().string_val());
  total += sum(value.val_as_IntList().items()) + sum(value.val_as_DoubleList().items());
  total += sum(value.val_as_BoolList().items()) + sum(value.val_as_TensorList().items());
  return total + sum(value.val_as_OptionalTensorList().items());
}

inline uint64_t sum(fb::Instruction instruction) {
  const fb::KernelCall kernel = instruction.instr_args_as_KernelCall();
  const fb::DelegateCall delegate = instruction.instr_args_as_DelegateCall();
  uint64_t total = static_cast<uint64_t>(kernel.op_index()) + sum(kernel.args());
  total += static_cast<uint64_t>(delegate.delegate_index()) + sum(delegate.args());
  total += static_cast<uint64_t>(instruction.instr_args_as_MoveCall().move_to());
  const fb::JumpFalseCall jump = instruction.instr_args_as_JumpFalseCall();
  total += static_cast<uint64_t>(jump.destination_instruction());
  return total + static_cast<uint64_t>(instruction.instr_args_as_FreeCall().value_index());
}

inline uint64_t sum(fb::Frame frame) {
  return sum(frame.filename()) + sum(frame.name()) + sum(frame.context());
}
inline uint64_t sum(fb::FrameList frames);
inline uint64_t sum(fb::Chain chain);
inline uint64_t sum(fb::Operator op) { return sum(op.name()) + sum(op.overload()); }
inline uint64_t sum(fb::CompileSpec spec) { return sum(spec.key()) + sum(spec.value()); }
inline uint64_t sum(fb::BackendDelegate delegate);
inline uint64_t sum(fb::NonConstBufferDevice device) {
  return static_cast<uint64_t>(device.buffer_idx()) + static_cast<uint64_t>(device.device_type());
}
inline uint64_t sum(fb::ExecutionPlan plan);
inline uint64_t sum(fb::Buffer buffer) { return sum(buffer.storage()); }
inline uint64_t sum(fb::BackendDelegateInlineData inlined) { return sum(inlined.data()); }
inline uint64_t sum(fb::DataSegment segment) { return segment.offset() + segment.size(); }
inline uint64_t sum(fb::SubsegmentOffsets part) {
  return part.segment_index() + sum(part.offsets());
}
inline uint64_t sum(fb::NamedData named) { return sum(named.key()) + named.segment_index(); }

template <typename T>
inline uint64_t sum(fb::Tables<T> tables) {
  uint64_t total = tables.size();
  for (size_t i = 0; i < tables.size(); ++i) total += sum(tables[i]);
  return total;
}

inline uint64_t sum(fb::FrameList frames) { return sum(frames.items()); }
inline uint64_t sum(fb::Chain chain) {
  return sum(chain.inputs()) + sum(chain.outputs()) + sum(chain.instructions()) +
         sum(chain.stacktrace());
}
inline uint64_t sum(fb::BackendDelegate delegate) {
  return sum(delegate.id()) + delegate.processed().index() + sum(delegate.compile_specs());
}
inline uint64_t sum(fb::ExecutionPlan plan) {
  const fb::ContainerMetadata meta = plan.container_meta_type();
  return sum(plan.name()) + sum(meta.encoded_inp_str()) + sum(meta.encoded_out_str()) +
         sum(plan.values()) + sum(plan.inputs()) + sum(plan.outputs()) + sum(plan.chains()) +
         sum(plan.operators()) + sum(plan.delegates()) + sum(plan.non_const_buffer_sizes()) +
         sum(plan.non_const_buffer_device());
}
inline uint64_t sum(fb::Program program) {
  return program.version() + sum(program.execution_plan()) + sum(program.constant_buffer()) +
         sum(program.backend_delegate_data()) + sum(program.segments()) +
         sum(program.constant_segment()) + sum(program.mutable_data_segments()) +
         sum(program.named_data());
}

}  // namespace test
}  // namespace rushlight
