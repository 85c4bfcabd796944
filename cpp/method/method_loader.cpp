#include "rushlight/method/method_loader.h"

#include <cstring>
#include <new>

#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/method/initial_state.h"
#include "rushlight/program/plan_check.h"

namespace rushlight {
namespace {

constexpr size_t kMaxName = 256;  // of an operator; no kernel has a longer name

// Moves keep the kinds of values, so this holds for every call.
bool has_tensor(const Instruction& instruction) {
  for (uint32_t k = 0; k < instruction.n_args; ++k) {
    const Tag tag = instruction.args[k]->tag;
    if (tag == Tag::Tensor || tag == Tag::TensorList || tag == Tag::OptionalTensorList) return true;
  }
  return false;
}

// The tensors of a call as keys of kernels tell them apart: "float32[0,1]", by dtype and dim order.
void append_types(const Instruction& call, Message& message) {
  const char* before = " of ";
  for (uint32_t k = 0; k < call.n_args; ++k) {
    if (call.args[k]->tag != Tag::Tensor) continue;
    const Tensor& tensor = *call.args[k]->t;
    message.append("%s%s[", before, dtype_name(tensor.dtype));
    for (size_t d = 0; d < tensor.rank; ++d) {
      message.append("%s%d", d == 0 ? "" : ",", tensor.dim_order[d]);
    }
    message.append("]");
    before = ", ";
  }
}

}  // namespace

Status MethodLoader::load() {
  RL_TRY(take_structures());
  RL_TRY(prepare_arenas());
  RL_TRY(make_values());
  make_lists();
  make_interface();
  make_instructions();
  resolve_kernels();
  RL_TRY(check_missing());
  RL_TRY(check_kernel_arguments());
  RL_TRY(keep_view_targets());
  method_.arenas_ = memory_.arenas;
  if (method_.options_.check_backends && calls_foreign_code()) RL_TRY(take_shadow());
  if (method_.meta_.n_delegates() == 0) return {};
  return method_.options_.backends.code()->load(*this);
}

Status MethodLoader::take_structures() {
  const PlanSizes& sizes = method_.meta_.sizes();
  const size_t bytes = lay_out(sizes, nullptr, &parts_);
  void* block = bytes != SIZE_MAX ? memory_.structures->allocate(bytes) : nullptr;
  if (block == nullptr) {
    parts_ = {};
    return message_.fail(Code::MemoryAllocationFailed,
                         "its structures take %zu bytes; the memory given for them has %zu", bytes,
                         memory_.structures->left());
  }
  std::memset(block, 0, bytes);
  lay_out(sizes, static_cast<uint8_t*>(block), &parts_);
  for (size_t i = 0; i < sizes.values; ++i) new (parts_.values + i) EValue();
  for (size_t i = 0; i < sizes.tensors; ++i) new (parts_.tensors + i) Tensor();
  for (size_t i = 0; i < sizes.specs; ++i) new (parts_.specs + i) CompileSpec();
  method_.n_values_ = sizes.values;
  method_.n_inputs_ = sizes.inputs;
  method_.n_outputs_ = sizes.outputs;
  method_.n_unset_inputs_ = sizes.inputs;
  method_.n_instructions_ = static_cast<uint32_t>(sizes.instructions);
  return {};
}

Status MethodLoader::prepare_arenas() {
  const MethodMeta& meta = method_.meta_;
  for (size_t k = 0; k < meta.n_arenas(); ++k) {
    const size_t wanted = meta.arena_bytes(k);
    if (wanted == 0) continue;
    const Span<uint8_t> arena = k < memory_.arenas.size() ? memory_.arenas[k] : Span<uint8_t>();
    if (arena.size() < wanted) {
      return message_.fail(Code::MemoryAllocationFailed,
                           "memory %zu takes %zu bytes; the arena given for it has %zu", k + 1,
                           wanted, arena.size());
    }
    if (reinterpret_cast<uintptr_t>(arena.data()) % Allocator::kAlignment != 0) {
      return message_.fail(Code::InvalidArgument,
                           "the arena given for memory %zu does not start at a multiple of %zu",
                           k + 1, Allocator::kAlignment);
    }
    const uint64_t bit = k < 64 ? uint64_t{1} << k : 0;
    if ((memory_.shared_arenas & bit) != 0) continue;
    if ((memory_.zeroed_arenas & bit) == 0) std::memset(arena.data(), 0, wanted);
    RL_TRY(write_initial_state(meta, k, arena, method_.options_.external_data, message_));
  }
  return {};
}

Status MethodLoader::make_values() {
  const fb::Tables<fb::EValue> values = plan_.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const fb::EValue from = values[i];
    EValue& to = parts_.values[i];
    to.tag = tag_of(from.val_type());
    switch (to.tag) {
      case Tag::Int:
        to.i = from.val_as_Int().int_val();
        break;
      case Tag::Bool:
        to.i = from.val_as_Bool().bool_val();
        break;
      case Tag::Double:
        to.d = from.val_as_Double().double_val();
        break;
      case Tag::String: {
        const StringView text = from.val_as_String().string_val();
        to.list = {text.data(), static_cast<uint32_t>(text.size())};
        break;
      }
      case Tag::Tensor:
        to.t = parts_.tensors + next_tensor_++;
        RL_TRY(make_tensor(i, from.val_as_Tensor(), to.t));
        break;
      default:
        break;  // None, and lists, which point to values
    }
  }
  return {};
}

Status MethodLoader::make_tensor(size_t i, fb::Tensor from, Tensor* to) {
  const size_t rank = from.sizes().size();
  to->dtype = static_cast<DType>(from.scalar_type());
  to->dynamism = static_cast<Dynamism>(from.shape_dynamism());
  to->rank = static_cast<uint8_t>(rank);
  to->sizes = parts_.dims + next_dim_;
  to->strides = to->sizes + rank;
  next_dim_ += 2 * rank;
  to->dim_order = fb::as_span(from.dim_order()).data();  // is in the program's image
  copy_sizes(from.sizes(), to->sizes);
  if (to->dynamism == Dynamism::Unbounded) return make_unbounded(i, to);
  const bool counted = count_elements(to->shape(), &to->numel) &&
                       strides_of(to->shape(), to->dim_order, to->strides);
  if (!counted) to->numel = INT64_MAX;  // the bound of an unplanned tensor, never its size
  to->capacity = to->numel;
  const Status status = place_data(from, to);
  if (!status.ok()) message_.prepend("value %zu: ", i);
  return status;
}

// Its sizes in the file have no meaning: it starts without elements and without memory.
Status MethodLoader::make_unbounded(size_t i, Tensor* to) {
  if (method_.options_.blocks == nullptr) {
    return message_.fail(Code::NotSupported,
                         "value %zu: a tensor without upper bound takes memory when the method "
                         "runs, and there is none to take (see MethodOptions::blocks); provide it, "
                         "or export the model with bounds",
                         i);
  }
  to->shrink_to_nothing();
  to->grows = true;
  return {};
}

Status MethodLoader::place_data(fb::Tensor from, Tensor* to) {
  if (is_planned(from)) {
    const fb::AllocationDetails place = from.allocation_info();
    const size_t arena = place.memory_id() - 1;
    const bool has_arena = arena < memory_.arenas.size() && memory_.arenas[arena].size() > 0;
    if (has_arena) to->data = memory_.arenas[arena].data() + arena_offset(place);
    to->planned = true;
    return {};
  }
  if (!has_file_data(from)) return {};
  Span<const uint8_t> bytes;
  if (is_external(from)) {
    Result<Span<const uint8_t>> external_data =
        external_bytes(from, method_.options_.external_data, message_);
    if (!external_data.ok()) return external_data.status();
    bytes = external_data.value();
    if (!is_aligned(bytes.data(), to->dtype)) {
      return message_.fail(Code::InvalidExternalData,
                           "its external data is not aligned for %s; give the data file at an "
                           "address that is a multiple of 16",
                           dtype_name(to->dtype));
    }
  } else {
    bytes = method_.meta_.program().constant(from.data_buffer_idx());
  }
  to->read_only = true;
  if (is_aligned(bytes.data(), to->dtype)) {
    to->data = const_cast<uint8_t*>(bytes.data());
    return {};
  }
  uint8_t* copy = parts_.constants + next_constant_;
  next_constant_ += padded_copy(to->nbytes());
  std::memcpy(copy, bytes.data(), to->nbytes());
  to->data = copy;
  return {};
}

// Runs after all values exist, since an IntList may refer to later values.
void MethodLoader::make_lists() {
  const fb::Tables<fb::EValue> values = plan_.values();
  const auto point = [this](size_t n, auto item_at) {
    EValue** items = parts_.list_items + next_item_;
    for (size_t k = 0; k < n; ++k) {
      const int64_t index = item_at(k);
      items[k] = index < 0 ? nullptr : parts_.values + index;
    }
    next_item_ += n;
    return EValue::List{items, static_cast<uint32_t>(n)};
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const fb::EValue from = values[i];
    EValue& to = parts_.values[i];
    if (to.tag == Tag::IntList) {
      const fb::Vector<int64_t> items = from.val_as_IntList().items();
      to.list = point(items.size(), [&](size_t k) { return items[k]; });
    } else if (to.tag == Tag::TensorList || to.tag == Tag::OptionalTensorList) {
      const fb::Vector<int32_t> items = to.tag == Tag::TensorList
                                            ? from.val_as_TensorList().items()
                                            : from.val_as_OptionalTensorList().items();
      to.list = point(items.size(), [&](size_t k) { return int64_t{items[k]}; });
    } else if (to.tag == Tag::DoubleList) {
      const fb::Vector<double> items = from.val_as_DoubleList().items();
      double* copy = parts_.doubles + next_double_;
      for (size_t k = 0; k < items.size(); ++k) copy[k] = items[k];
      next_double_ += items.size();
      to.list = {copy, static_cast<uint32_t>(items.size())};
    } else if (to.tag == Tag::BoolList) {
      const fb::Vector<bool> items = from.val_as_BoolList().items();
      to.list = {items.empty() ? nullptr : items.bytes(), static_cast<uint32_t>(items.size())};
    }
  }
}

// Finds tensors without memory of their own. Inputs and outputs get memory from the caller. Any
// other such tensor can only get memory from an instruction (a view), so the tensors are checked
// before each call of a kernel.
void MethodLoader::make_interface() {
  const auto is_bare = [](const Tensor* tensor) {
    return tensor != nullptr && tensor->data == nullptr && tensor->capacity > 0;
  };
  // `planned` is used as a temporary mark, since both lists may be long.
  for (size_t k = 0; k < method_.n_inputs_; ++k) {
    EValue* value = parts_.values + plan_.inputs()[k];
    parts_.inputs[k] = {value, value->tensor_or_null(), value->tag, false};
    if (parts_.inputs[k].tensor != nullptr) parts_.inputs[k].tensor->grows = false;
    if (is_bare(parts_.inputs[k].tensor)) parts_.inputs[k].tensor->planned = true;
  }
  for (size_t k = 0; k < method_.n_outputs_; ++k) {
    EValue* value = parts_.values + plan_.outputs()[k];
    Tensor* tensor = value->tensor_or_null();
    const bool needs_data = is_bare(tensor) && !tensor->planned;
    parts_.outputs[k] = {value, tensor, needs_data};
  }
  for (size_t k = 0; k < method_.n_outputs_; ++k) {
    if (parts_.outputs[k].needs_data) parts_.outputs[k].tensor->planned = true;
  }
  for (size_t i = 0; i < next_tensor_; ++i) {
    Tensor& tensor = parts_.tensors[i];
    if (!is_bare(&tensor)) continue;
    if (!tensor.planned) method_.has_bare_tensors_ = true;
    tensor.planned = false;
  }
}

void MethodLoader::make_instructions() {
  uint32_t next = 0;
  for (size_t c = 0; c < plan_.chains().size(); ++c) {
    const fb::Tables<fb::Instruction> instructions = plan_.chains()[c].instructions();
    const uint32_t chain_start = next;
    for (size_t i = 0; i < instructions.size(); ++i) {
      make_instruction(instructions[i], chain_start, parts_.instructions + next++);
    }
    parts_.chain_ends[c] = next;
  }
}

EValue** MethodLoader::point_args(fb::Vector<int32_t> args) {
  EValue** first = parts_.args + next_arg_;
  for (size_t k = 0; k < args.size(); ++k) point_arg(args[k]);
  return first;
}

EValue** MethodLoader::point_arg(int32_t index) {
  EValue** place = parts_.args + next_arg_++;
  *place = parts_.values + index;
  return place;
}

void MethodLoader::make_instruction(fb::Instruction from, uint32_t chain_start, Instruction* to) {
  switch (from.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: {
      const fb::KernelCall call = from.instr_args_as_KernelCall();
      to->kind = InstructionKind::Kernel;
      to->args = point_args(call.args());
      to->n_args = static_cast<uint32_t>(call.args().size());
      to->target = static_cast<uint32_t>(call.op_index());
      break;
    }
    case fb::InstructionArguments::DelegateCall: {
      const fb::DelegateCall call = from.instr_args_as_DelegateCall();
      to->kind = InstructionKind::Delegate;
      to->args = point_args(call.args());
      to->n_args = static_cast<uint32_t>(call.args().size());
      to->target = static_cast<uint32_t>(call.delegate_index());
      to->checked = true;
      break;
    }
    case fb::InstructionArguments::MoveCall: {
      const fb::MoveCall call = from.instr_args_as_MoveCall();
      to->kind = InstructionKind::Move;
      to->args = point_arg(call.move_from());
      point_arg(call.move_to());
      to->n_args = 2;
      break;
    }
    case fb::InstructionArguments::JumpFalseCall: {
      const fb::JumpFalseCall call = from.instr_args_as_JumpFalseCall();
      to->kind = InstructionKind::JumpFalse;
      to->args = point_arg(call.cond_value_index());
      to->n_args = 1;
      to->target = chain_start + static_cast<uint32_t>(call.destination_instruction());
      break;
    }
    default:
      to->kind = InstructionKind::Free;
      to->args = point_arg(from.instr_args_as_FreeCall().value_index());
      to->n_args = 1;
  }
}

void MethodLoader::resolve_kernels() {
  char buffer[kMaxName];
  bool repoints = false;
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    const Instruction& instruction = parts_.instructions[i];
    repoints = repoints || instruction.kind == InstructionKind::Move || is_view(instruction);
  }
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    Instruction& instruction = parts_.instructions[i];
    if (instruction.kind != InstructionKind::Kernel) continue;
    instruction.is_scalar = !has_tensor(instruction);
    const StringView name =
        method_.meta_.operator_name(instruction.target).join(buffer, sizeof(buffer));
    const Kernel* kernel =
        method_.options_.kernels->find(name, instruction.args, instruction.n_args);
    parts_.kernels[i] = kernel;
    if (kernel != nullptr) instruction.fn = kernel->fn;
    // Views, and moves, can change the memory of a tensor.
    instruction.checked = (method_.has_bare_tensors_ || repoints) && !is_view(instruction);
  }
}

Status MethodLoader::check_missing() {
  size_t n_operators = 0;
  size_t n_backends = 0;
  message_.clear();
  if (!kernels::isa_is_there()) {
    return message_.fail(Code::NotSupported,
                         "this build has loops for one instruction set alone, which this processor "
                         "does not have; build the library for another one, or for all");
  }
  uint32_t cursor = 0;
  MissingOperator missing;
  uint32_t last_listed = UINT32_MAX;
  while (method_.next_missing_operator(&cursor, &missing)) {
    const uint32_t op = parts_.instructions[cursor - 1].target;
    if (op == last_listed) continue;  // calls of one operator are often consecutive
    last_listed = op;
    char buffer[kMaxName];
    const StringView name = missing.name.join(buffer, sizeof(buffer));
    if (n_operators++ == 0) message_.append("no kernel for");
    message_.append("%s %.*s", n_operators == 1 ? "" : ",", name.len(), name.data());
    if (missing.other_types) append_types(parts_.instructions[cursor - 1], message_);
    message_.append(" (instruction %lu)", static_cast<unsigned long>(missing.instruction));
  }
  cursor = 0;
  MissingBackend backend;
  bool some_unknown = false;
  while (method_.next_missing_backend(&cursor, &backend)) {
    if (n_backends++ == 0) message_.append("%sno backend", n_operators == 0 ? "" : "; ");
    message_.append("%s %.*s%s", n_backends == 1 ? "" : ",", backend.id.len(), backend.id.data(),
                    backend.registered ? " (it is there, but cannot work here)" : "");
    some_unknown = some_unknown || !backend.registered;
  }
  if (some_unknown) {
    message_.append("; add %s to the table of backends, or export without",
                    n_backends == 1 ? "it" : "them");
  }
  if (n_operators > 0) return Code::OperatorMissing;
  return n_backends > 0 ? Code::NotFound : Code::Ok;
}

Status MethodLoader::check_kernel_arguments() {
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    const Instruction& instruction = parts_.instructions[i];
    if (instruction.kind != InstructionKind::Kernel) continue;
    const Kernel& kernel = *parts_.kernels[i];
    Status status;
    if (kernel.self != nullptr) {
      status = kernel.self->check(kernel, method_.meta_.program(), message_);
      if (status.ok() && takes_any(kernel)) {
        status = kernel.self->learn(instruction.n_args, message_);
      }
    }
    if (status.ok()) {
      status = check_arguments(kernel, instruction.args, instruction.n_args, message_);
    }
    if (status.ok()) {
      status = check_written(kernel, instruction.args, instruction.n_args, message_);
    }
    if (status.ok()) continue;
    method_.failed_pc_ = i;
    message_.prepend("instruction %lu (%s): ",
                     static_cast<unsigned long>(method_.place_of(i).instruction), kernel.name);
    return status;
  }
  return {};
}

bool MethodLoader::is_view(const Instruction& instruction) const {
  return instruction.kind == InstructionKind::Kernel && instruction.n_args > 0 &&
         is_view_operator(plan_.operators()[instruction.target]);
}

// At the start of every run, the targets of views get back the memory that they had at load. That
// is possible only for tensors that are known now, so inputs and the targets of moves are refused.
Status MethodLoader::keep_view_targets() {
  // In this function, a target is temporarily marked as a None with a tensor.
  const auto is_target = [](const EValue& value) {
    return value.tag == Tag::None && value.t != nullptr;
  };
  bool valid = true;
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    if (!is_view(parts_.instructions[i])) continue;
    EValue* target = parts_.instructions[i].args[parts_.instructions[i].n_args - 1];
    if (target->tag != Tag::Tensor) continue;  // marked before, or not a tensor
    Tensor& tensor = *target->t;
    parts_.views[method_.n_views_++] = {target, tensor.data, tensor.capacity, tensor.read_only};
    tensor.grows = false;  // it uses the memory that it views
    target->tag = Tag::None;
  }
  for (uint32_t i = 0; i < method_.n_instructions_; ++i) {
    const Instruction& instruction = parts_.instructions[i];
    if (instruction.kind != InstructionKind::Move) continue;
    valid = valid && !is_target(*instruction.args[1]);
  }
  for (size_t k = 0; k < method_.n_inputs_; ++k) {
    valid = valid && !is_target(*parts_.inputs[k].value);
  }
  for (size_t i = 0; i < method_.n_views_; ++i) parts_.views[i].target->tag = Tag::Tensor;
  if (method_.n_views_ > 0) method_.blocks_.keep_until_collected();
  if (valid) return {};
  return message_.fail(Code::InvalidProgram, "the target of a view is an input or is moved to");
}

// Whether the method has delegates, or kernels that are not the runtime's own.
bool MethodLoader::calls_foreign_code() const {
  bool any = method_.meta_.n_delegates() > 0;
  for (uint32_t i = 0; !any && i < method_.n_instructions_; ++i) {
    any = parts_.kernels[i] != nullptr && parts_.kernels[i]->self != nullptr;
  }
  return any;
}

// Allocates a copy of the arenas, for comparing them after a call of foreign code.
Status MethodLoader::take_shadow() {
  size_t bytes = 0;
  for (const Span<uint8_t>& arena : memory_.arenas) bytes += arena.size();
  method_.shadow_ = static_cast<uint8_t*>(memory_.structures->allocate(bytes));
  if (method_.shadow_ != nullptr) return {};
  return message_.fail(
      Code::MemoryAllocationFailed,
      "checking its backends and kernels takes %zu bytes more; the memory given has %zu", bytes,
      memory_.structures->left());
}

}  // namespace rushlight
