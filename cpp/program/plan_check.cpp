#include "rushlight/program/plan_check.h"

namespace rushlight {
namespace {

class PlanChecker {
 public:
  PlanChecker(const Program& program, fb::ExecutionPlan plan, PlanSizes* sizes, Message& message)
      : program_(program),
        plan_(plan),
        sizes_(*sizes),
        message_(message),
        items_left_(program.image().size()),
        copies_left_(program.image().size()) {}

  Status check();

 private:
  Status check_arenas();
  Status check_value(size_t i);
  Status check_tensor(fb::Tensor tensor);
  Status check_shape(fb::Tensor tensor, size_t* nbytes);
  Status check_planned(fb::Tensor tensor, size_t nbytes);
  Status check_file_data(fb::Tensor tensor, size_t nbytes);
  Status check_int_list(fb::Vector<int64_t> items);
  Status check_tensor_list(size_t i, fb::Vector<int32_t> items, bool optional);
  Status check_interface(fb::Vector<int32_t> indices, const char* what, bool input);
  Status check_delegates();
  Status check_delegate(fb::BackendDelegate delegate);
  Status check_chains();
  Status check_instruction(fb::Instruction instruction, size_t n_instructions);
  Status check_kernel_call(fb::KernelCall call);
  Status check_delegate_call(fb::DelegateCall call);
  Status check_move(fb::MoveCall call);
  Status check_jump(fb::JumpFalseCall call, size_t n_instructions);
  Status check_args(fb::Vector<int32_t> args);

  size_t n_values() const { return plan_.values().size(); }
  bool is_value(int64_t index) const {
    return index >= 0 && static_cast<uint64_t>(index) < n_values();
  }
  fb::KernelTypes type_of(int64_t index) const {
    return plan_.values()[static_cast<size_t>(index)].val_type();
  }
  bool is_number(int64_t index) const {
    const fb::KernelTypes type = type_of(index);
    return type == fb::KernelTypes::Int || type == fb::KernelTypes::Bool ||
           type == fb::KernelTypes::Double;
  }
  // Lists and arguments together may not have more items than the file has bytes. Only a file whose
  // tables share vectors can exceed that, and such files could be small but expensive to load.
  Status count_items(size_t n);
  Status fail_index(const char* what, long long index);

  const Program& program_;
  fb::ExecutionPlan plan_;
  PlanSizes& sizes_;
  Message& message_;
  size_t items_left_;
  size_t copies_left_;
};

Status PlanChecker::check() {
  if (!plan_.has_values() || !plan_.has_inputs() || !plan_.has_outputs() || !plan_.has_chains() ||
      !plan_.has_non_const_buffer_sizes()) {
    return message_.fail(Code::InvalidProgram,
                         "the plan lacks its values, inputs, outputs, chains or buffer sizes");
  }
  RL_TRY(check_arenas());
  for (size_t i = 0; i < n_values(); ++i) {
    const Status status = check_value(i);
    if (status.ok()) continue;
    message_.prepend("value %zu: ", i);
    return status;
  }
  RL_TRY(check_interface(plan_.inputs(), "input", true));
  RL_TRY(check_interface(plan_.outputs(), "output", false));
  RL_TRY(check_delegates());
  RL_TRY(check_chains());
  sizes_.values = n_values();
  sizes_.given = sizes_.delegates > 0 ? n_values() : 0;
  sizes_.inputs = plan_.inputs().size();
  sizes_.outputs = plan_.outputs().size();
  return {};
}

Status PlanChecker::count_items(size_t n) {
  if (n > items_left_) {
    return message_.fail(Code::InvalidProgram, "its lists have more items than the file has bytes");
  }
  items_left_ -= n;
  return {};
}

Status PlanChecker::check_arenas() {
  const fb::Vector<int64_t> sizes = plan_.non_const_buffer_sizes();
  if (sizes.empty()) {
    return message_.fail(Code::InvalidProgram, "the list of buffer sizes is empty");
  }
  uint64_t total = 0;
  for (size_t k = 1; k < sizes.size(); ++k) {
    const bool fits = sizes[k] >= 0 && static_cast<uint64_t>(sizes[k]) <= SIZE_MAX / 2 - total;
    if (!fits) {
      return message_.fail(Code::InvalidProgram, "memory %zu has the size %lld", k,
                           static_cast<long long>(sizes[k]));
    }
    total += static_cast<uint64_t>(sizes[k]);
  }
  for (size_t k = 0; k < plan_.non_const_buffer_device().size(); ++k) {
    if (plan_.non_const_buffer_device()[k].device_type() == fb::DeviceType::CPU) continue;
    return message_.fail(Code::NotSupported, "memory %ld is planned on a device other than the CPU",
                         static_cast<long>(plan_.non_const_buffer_device()[k].buffer_idx()));
  }
  return {};
}

Status PlanChecker::check_value(size_t i) {
  const fb::EValue value = plan_.values()[i];
  switch (value.val_type()) {
    case fb::KernelTypes::Null:
    case fb::KernelTypes::Int:
    case fb::KernelTypes::Bool:
    case fb::KernelTypes::Double:
    case fb::KernelTypes::String:
      return {};
    case fb::KernelTypes::Tensor:
      return check_tensor(value.val_as_Tensor());
    case fb::KernelTypes::IntList:
      return check_int_list(value.val_as_IntList().items());
    case fb::KernelTypes::DoubleList:
      sizes_.doubles += value.val_as_DoubleList().items().size();
      return count_items(value.val_as_DoubleList().items().size());
    case fb::KernelTypes::BoolList:
      return count_items(value.val_as_BoolList().items().size());
    case fb::KernelTypes::TensorList:
      return check_tensor_list(i, value.val_as_TensorList().items(), false);
    case fb::KernelTypes::OptionalTensorList:
      return check_tensor_list(i, value.val_as_OptionalTensorList().items(), true);
    case fb::KernelTypes::NONE:
      return message_.fail(Code::InvalidProgram, "it is absent");
  }
  return message_.fail(Code::NotSupported,
                       "it is of kind %u, which this version of the format does not have",
                       static_cast<unsigned>(value.val_type()));
}

Status PlanChecker::check_tensor(fb::Tensor tensor) {
  if (tensor.storage_offset() != 0 || tensor.layout() != 0) {
    return message_.fail(Code::NotSupported, "a tensor with %s",
                         tensor.layout() != 0 ? "a sparse layout" : "a storage offset");
  }
  const int dynamism = static_cast<int>(tensor.shape_dynamism());
  if (dynamism < 0 || dynamism > 2) {
    return message_.fail(Code::InvalidProgram, "its dynamism is %d", dynamism);
  }
  if (tensor.shape_dynamism() == fb::TensorShapeDynamism::DYNAMIC_UNBOUND) {
    // Such a tensor gets memory when it needs it; planned memory or data in the file would be a
    // bound.
    const bool own = is_planned(tensor) || has_file_data(tensor);
    if (own || tensor.sizes().size() == 0) {
      return message_.fail(Code::InvalidProgram, "a tensor without upper bound %s",
                           own ? "has a place or data" : "has no dimensions");
    }
  }
  if (tensor.extra_tensor_info().device_type() != fb::DeviceType::CPU) {
    return message_.fail(Code::NotSupported, "a tensor on another device than the CPU");
  }
  size_t nbytes = 0;
  RL_TRY(check_shape(tensor, &nbytes));
  if (is_planned(tensor)) RL_TRY(check_planned(tensor, nbytes));
  if (has_file_data(tensor)) RL_TRY(check_file_data(tensor, nbytes));
  ++sizes_.tensors;
  sizes_.dims += tensor.sizes().size();
  return {};
}

Status PlanChecker::check_shape(fb::Tensor tensor, size_t* nbytes) {
  const DType dtype = static_cast<DType>(tensor.scalar_type());
  if (element_size(dtype) == 0) {
    return message_.fail(Code::InvalidProgram, "there is no dtype %d", static_cast<int>(dtype));
  }
  const size_t rank = tensor.sizes().size();
  if (rank > kMaxRank) {
    return message_.fail(Code::NotSupported, "a tensor of rank %zu; %zu is the most", rank,
                         kMaxRank);
  }
  const Span<const uint8_t> dim_order = fb::as_span(tensor.dim_order());
  if (dim_order.size() != rank || !is_permutation(dim_order.data(), rank)) {
    return message_.fail(Code::InvalidProgram,
                         "its dim order is not a permutation of its %zu dimensions", rank);
  }
  RL_TRY(count_items(rank));
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  copy_sizes(tensor.sizes(), sizes);
  for (size_t k = 0; k < rank; ++k) {
    if (sizes[k] >= 0) continue;
    return message_.fail(Code::InvalidProgram, "size %zu is %ld", k, static_cast<long>(sizes[k]));
  }
  int64_t numel = 0;
  const bool counted = count_elements({sizes, rank}, &numel) &&
                       static_cast<uint64_t>(numel) <= SIZE_MAX / 2 / element_size(dtype) &&
                       strides_of({sizes, rank}, dim_order.data(), strides);
  const bool bound_only = tensor.shape_dynamism() != fb::TensorShapeDynamism::STATIC &&
                          !is_planned(tensor) && !has_file_data(tensor);
  if (!counted && !bound_only) {  // an unplanned dynamic tensor may have any bound
    return message_.fail(Code::InvalidProgram, "its sizes are too great");
  }
  *nbytes = counted ? static_cast<size_t>(numel) * element_size(dtype) : 0;
  return {};
}

Status PlanChecker::check_planned(fb::Tensor tensor, size_t nbytes) {
  const fb::AllocationDetails place = tensor.allocation_info();
  const size_t n_buffers = plan_.non_const_buffer_sizes().size();
  if (place.memory_id() == 0 || place.memory_id() >= n_buffers) {
    return message_.fail(Code::InvalidArgument, "memory id %lu; there are 1 to %zu",
                         static_cast<unsigned long>(place.memory_id()), n_buffers - 1);
  }
  const uint64_t offset = arena_offset(place);
  const uint64_t arena = static_cast<uint64_t>(plan_.non_const_buffer_sizes()[place.memory_id()]);
  if (offset > arena || nbytes > arena - offset) {
    return message_.fail(
        Code::MemoryAllocationFailed, "%zu bytes at offset %llu leave memory %lu of %llu bytes",
        nbytes, static_cast<unsigned long long>(offset),
        static_cast<unsigned long>(place.memory_id()), static_cast<unsigned long long>(arena));
  }
  const DType dtype = static_cast<DType>(tensor.scalar_type());
  if ((offset & (element_alignment(dtype) - 1)) != 0) {
    return message_.fail(Code::InvalidProgram, "offset %llu is not aligned for %s",
                         static_cast<unsigned long long>(offset), dtype_name(dtype));
  }
  return {};
}

Status PlanChecker::check_file_data(fb::Tensor tensor, size_t nbytes) {
  if (is_external(tensor)) {
    if (!tensor.extra_tensor_info().fully_qualified_name().empty()) return {};
    return message_.fail(Code::InvalidProgram, "external data without a name");
  }
  const size_t index = tensor.data_buffer_idx();
  const bool planned = is_planned(tensor);
  const char* what = planned ? "initial value" : "constant";
  const Span<const uint8_t> bytes =
      planned ? program_.mutable_state(index) : program_.constant(index);
  if (bytes.data() == nullptr && nbytes > 0) {
    return message_.fail(Code::InvalidArgument, "there is no %s %zu in the program", what, index);
  }
  if (bytes.size() < nbytes) {
    return message_.fail(Code::InvalidProgram, "its %zu bytes, %s %zu, leave the segment", nbytes,
                         what, index);
  }
  const DType dtype = static_cast<DType>(tensor.scalar_type());
  if (planned || is_aligned(bytes.data(), dtype)) return {};
  const size_t copy = padded_copy(nbytes);
  if (nbytes > copies_left_) {
    return message_.fail(Code::InvalidProgram,
                         "the constants that are not aligned for their type are more "
                         "bytes than the file has");
  }
  copies_left_ -= nbytes;
  sizes_.constant_copies += copy;
  return {};
}

Status PlanChecker::check_int_list(fb::Vector<int64_t> items) {
  RL_TRY(count_items(items.size()));
  sizes_.list_items += items.size();
  for (size_t k = 0; k < items.size(); ++k) {
    if (is_value(items[k]) && is_number(items[k])) continue;
    return message_.fail(Code::InvalidProgram, "item %zu of the IntList, value %lld, is not an Int",
                         k, static_cast<long long>(items[k]));
  }
  return {};
}

Status PlanChecker::check_tensor_list(size_t i, fb::Vector<int32_t> items, bool optional) {
  RL_TRY(count_items(items.size()));
  sizes_.list_items += items.size();
  for (size_t k = 0; k < items.size(); ++k) {
    const int32_t index = items[k];
    if (optional && index == -1) continue;
    const bool before = index >= 0 && static_cast<size_t>(index) < i;
    if (before && type_of(index) == fb::KernelTypes::Tensor) continue;
    if (before && optional && type_of(index) == fb::KernelTypes::Null) continue;
    return message_.fail(Code::InvalidProgram,
                         "item %zu of the list, value %ld, is not a Tensor before it", k,
                         static_cast<long>(index));
  }
  return {};
}

Status PlanChecker::check_interface(fb::Vector<int32_t> indices, const char* what, bool input) {
  RL_TRY(count_items(indices.size()));
  for (size_t k = 0; k < indices.size(); ++k) {
    if (!is_value(indices[k])) {
      return message_.fail(Code::InvalidProgram, "%s %zu is value %ld of %zu", what, k,
                           static_cast<long>(indices[k]), n_values());
    }
    if (!input || type_of(indices[k]) != fb::KernelTypes::Tensor) continue;
    const size_t index = static_cast<size_t>(indices[k]);
    if (is_constant(plan_.values()[index].val_as_Tensor())) {
      return message_.fail(Code::InvalidProgram, "%s %zu is a constant", what, k);
    }
  }
  return {};
}

Status PlanChecker::check_delegates() {
  const fb::Tables<fb::BackendDelegate> delegates = plan_.delegates();
  sizes_.delegates = delegates.size();
  for (size_t i = 0; i < delegates.size(); ++i) {
    const Status status = check_delegate(delegates[i]);
    if (status.ok()) continue;
    message_.prepend("delegate %zu: ", i);
    return status;
  }
  return {};
}

Status PlanChecker::check_delegate(fb::BackendDelegate delegate) {
  if (delegate.id().empty() || !delegate.has_processed()) {
    return message_.fail(Code::InvalidProgram, "it lacks its id or its payload");
  }
  const fb::BackendDelegateDataReference payload = delegate.processed();
  const bool is_inline = payload.location() == fb::DataLocation::INLINE;
  if (!is_inline && payload.location() != fb::DataLocation::SEGMENT) {
    return message_.fail(Code::InvalidProgram,
                         "its payload is neither in the program nor in a segment");
  }
  const size_t n =
      is_inline ? program_.root().backend_delegate_data().size() : program_.n_segments();
  if (payload.index() >= n) {
    return message_.fail(Code::InvalidProgram, "payload %lu of %zu",
                         static_cast<unsigned long>(payload.index()), n);
  }
  RL_TRY(count_items(delegate.compile_specs().size()));
  sizes_.specs += delegate.compile_specs().size();
  return {};
}

Status PlanChecker::check_chains() {
  const fb::Tables<fb::Chain> chains = plan_.chains();
  if (chains.empty()) return message_.fail(Code::InvalidProgram, "the plan has no chain");
  sizes_.chains = chains.size();
  for (size_t c = 0; c < chains.size(); ++c) {
    if (!chains[c].has_instructions()) {
      return message_.fail(Code::InvalidProgram, "chain %zu has no instructions", c);
    }
    const fb::Tables<fb::Instruction> instructions = chains[c].instructions();
    RL_TRY(count_items(instructions.size()));
    sizes_.instructions += instructions.size();
    for (size_t i = 0; i < instructions.size(); ++i) {
      const Status status = check_instruction(instructions[i], instructions.size());
      if (status.ok()) continue;
      message_.prepend("instruction %zu: ", i);
      return status;
    }
  }
  if (sizes_.instructions > UINT32_MAX / 2) {
    return message_.fail(Code::InvalidProgram, "the plan has %zu instructions",
                         sizes_.instructions);
  }
  return {};
}

Status PlanChecker::check_instruction(fb::Instruction instruction, size_t n_instructions) {
  switch (instruction.instr_args_type()) {
    case fb::InstructionArguments::KernelCall:
      return check_kernel_call(instruction.instr_args_as_KernelCall());
    case fb::InstructionArguments::DelegateCall:
      return check_delegate_call(instruction.instr_args_as_DelegateCall());
    case fb::InstructionArguments::MoveCall:
      return check_move(instruction.instr_args_as_MoveCall());
    case fb::InstructionArguments::JumpFalseCall:
      return check_jump(instruction.instr_args_as_JumpFalseCall(), n_instructions);
    case fb::InstructionArguments::FreeCall: {
      const int32_t index = instruction.instr_args_as_FreeCall().value_index();
      sizes_.args += 1;
      if (is_value(index) && type_of(index) == fb::KernelTypes::Tensor) return {};
      return fail_index("the tensor to free", index);
    }
    case fb::InstructionArguments::NONE:
      return message_.fail(Code::InvalidProgram, "there is none");
  }
  return message_.fail(Code::NotSupported,
                       "it is of kind %u, which this version of the format does not have",
                       static_cast<unsigned>(instruction.instr_args_type()));
}

Status PlanChecker::fail_index(const char* what, long long index) {
  return message_.fail(Code::InvalidProgram, "%s is value %lld, which is not one", what, index);
}

Status PlanChecker::check_args(fb::Vector<int32_t> args) {
  RL_TRY(count_items(args.size()));
  sizes_.args += args.size();
  for (size_t k = 0; k < args.size(); ++k) {
    if (is_value(args[k])) continue;
    return message_.fail(Code::InvalidProgram, "argument %zu is value %ld of %zu", k,
                         static_cast<long>(args[k]), n_values());
  }
  return {};
}

Status PlanChecker::check_kernel_call(fb::KernelCall call) {
  const int32_t op = call.op_index();
  if (op < 0 || static_cast<size_t>(op) >= plan_.operators().size()) {
    return message_.fail(Code::InvalidProgram, "it calls operator %ld of %zu",
                         static_cast<long>(op), plan_.operators().size());
  }
  const fb::Operator callee = plan_.operators()[static_cast<size_t>(op)];
  if (callee.name().empty()) {
    return message_.fail(Code::InvalidProgram, "operator %ld has no name", static_cast<long>(op));
  }
  sizes_.views += is_view_operator(callee);
  return check_args(call.args());
}

Status PlanChecker::check_delegate_call(fb::DelegateCall call) {
  const int32_t index = call.delegate_index();
  if (index < 0 || static_cast<size_t>(index) >= plan_.delegates().size()) {
    return message_.fail(Code::InvalidProgram, "it calls delegate %ld of %zu",
                         static_cast<long>(index), plan_.delegates().size());
  }
  if (call.args().size() > sizes_.delegate_args) sizes_.delegate_args = call.args().size();
  return check_args(call.args());
}

Status PlanChecker::check_move(fb::MoveCall call) {
  const int32_t from = call.move_from();
  const int32_t to = call.move_to();
  sizes_.args += 2;
  if (!is_value(from)) return fail_index("what it moves", from);
  if (!is_value(to)) return fail_index("where it moves to", to);
  if (is_number(from) && is_number(to)) return {};
  bool alike = type_of(from) == type_of(to);
  if (alike && type_of(from) == fb::KernelTypes::Tensor) {
    // A move may change which tensor a value refers to, but not the properties by which kernels
    // were selected.
    const fb::Tensor a = plan_.values()[static_cast<size_t>(from)].val_as_Tensor();
    const fb::Tensor b = plan_.values()[static_cast<size_t>(to)].val_as_Tensor();
    alike = a.scalar_type() == b.scalar_type() && a.sizes().size() == b.sizes().size();
  }
  if (alike) return {};
  return message_.fail(Code::InvalidProgram,
                       "it moves value %ld to value %ld, which is of another kind, dtype or rank",
                       static_cast<long>(from), static_cast<long>(to));
}

Status PlanChecker::check_jump(fb::JumpFalseCall call, size_t n_instructions) {
  const int32_t condition = call.cond_value_index();
  const int32_t target = call.destination_instruction();
  sizes_.args += 1;
  if (!is_value(condition)) return fail_index("the condition", condition);
  if (!is_number(condition)) {
    const fb::Tensor tensor = plan_.values()[static_cast<size_t>(condition)].val_as_Tensor();
    if (!tensor.present() || tensor.scalar_type() != fb::ScalarType::BOOL) {
      return message_.fail(Code::InvalidProgram, "the condition, value %ld, is not a Bool",
                           static_cast<long>(condition));
    }
  }
  if (target >= 0 && static_cast<size_t>(target) <= n_instructions) return {};
  return message_.fail(Code::InvalidProgram, "it jumps to instruction %ld of %zu",
                       static_cast<long>(target), n_instructions);
}

}  // namespace

Status check_plan(const Program& program, fb::ExecutionPlan plan, PlanSizes* sizes,
                  Message& message) {
  *sizes = PlanSizes();
  const Status status = PlanChecker(program, plan, sizes, message).check();
  if (!status.ok()) message.prepend("%.*s: ", plan.name().len(), plan.name().data());
  return status;
}

bool is_view_operator(fb::Operator op) {
  return op.name() == "executorch_prim::et_view" && op.overload() == "default";
}

Tag tag_of(fb::KernelTypes type) {
  // In the order of the numbers of the format, from 0.
  static constexpr Tag kTags[] = {Tag::None,     Tag::None,       Tag::Int,
                                  Tag::Bool,     Tag::Double,     Tag::Tensor,
                                  Tag::String,   Tag::IntList,    Tag::DoubleList,
                                  Tag::BoolList, Tag::TensorList, Tag::OptionalTensorList};
  static_assert(static_cast<size_t>(fb::KernelTypes::Tensor) == 5 &&
                    static_cast<size_t>(fb::KernelTypes::OptionalTensorList) == 11,
                "as the table has them");
  const auto number = static_cast<size_t>(type);
  return number < sizeof(kTags) / sizeof(kTags[0]) ? kTags[number] : Tag::None;
}

}  // namespace rushlight
