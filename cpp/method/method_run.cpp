// The loop that runs a method's instructions. Nothing here allocates.
#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/method/method.h"
#include "rushlight/method/running_method.h"
#include "rushlight/platform/platform.h"

namespace rushlight {
namespace {

bool is_bare(const Tensor* tensor) {
  return tensor != nullptr && tensor->data == nullptr && tensor->capacity > 0;
}

bool share_memory(const Tensor& a, const Tensor& b) {
  const auto bytes = [](const Tensor& t) {
    return static_cast<uintptr_t>(t.capacity) * element_size(t.dtype);
  };
  const auto first = reinterpret_cast<uintptr_t>(a.data);
  const auto second = reinterpret_cast<uintptr_t>(b.data);
  return &a != &b && first < second + bytes(b) && second < first + bytes(a);
}

bool all_true(const Tensor& tensor) {
  const uint8_t* flags = tensor.as<uint8_t>();
  for (int64_t i = 0; i < tensor.numel; ++i) {
    if (flags[i] == 0) return false;
  }
  return true;
}

}  // namespace

Status Method::check_ready() {
  if (state_ != State::Ready) {
    return message_.fail(Code::InvalidState, "the method is not loaded");
  }
  for (size_t i = 0; n_unset_inputs_ > 0 && i < n_inputs_; ++i) {
    if (parts_.inputs[i].is_set) continue;
    return named(message_.fail(Code::InvalidState, "input %zu was never set", i));
  }
  for (size_t i = 0; i < n_outputs_; ++i) {
    if (!parts_.outputs[i].needs_data || !is_bare(parts_.outputs[i].tensor)) continue;
    return named(message_.fail(Code::InvalidState,
                               "output %zu is not planned and has no memory; call set_output_data",
                               i));
  }
  return has_new_output_data_ ? check_outputs_apart() : Status();
}

// Checks that outputs set by set_output_data() do not overlap. This is done in each run, because
// two calls may exchange the memory of two outputs.
Status Method::check_outputs_apart() {
  for (size_t i = 0; i < n_outputs_; ++i) {
    for (size_t k = 0; k < i && parts_.outputs[i].needs_data; ++k) {
      if (!parts_.outputs[k].needs_data) continue;
      if (!share_memory(*parts_.outputs[k].tensor, *parts_.outputs[i].tensor)) continue;
      return named(message_.fail(Code::InvalidState,
                                 "the memory given for output %zu overlaps that for output %zu: "
                                 "give each memory of its own",
                                 i, k));
    }
  }
  has_new_output_data_ = false;
  return {};
}

// Runs after plans with tensors that may have no memory: refuses outputs without memory, because
// they cannot be read.
Status Method::check_outputs() {
  for (size_t i = 0; i < n_outputs_; ++i) {
    if (!is_bare(parts_.outputs[i].value->tensor_or_null())) continue;
    return named(
        message_.fail(Code::InvalidProgram, "output %zu has no memory: nothing gave it any", i));
  }
  return {};
}

void Method::restore_views() {
  for (size_t i = 0; i < n_views_; ++i) {
    const ViewSlot& view = parts_.views[i];
    Tensor& tensor = *view.target->t;
    tensor.data = view.data;
    tensor.capacity = view.capacity;
    tensor.read_only = view.read_only;
    if (tensor.numel > tensor.capacity) tensor.shrink_to_nothing();
  }
}

Status Method::execute() {
  if (report() == nullptr) return execute_all();
  const RunningMethod running(*this);
  const Status status = execute_all();
  running_pc_ = kNoInstruction;
  if (!status.ok()) report_run(status);
  return status;
}

Status Method::execute_all() {
  failed_pc_ = kNoInstruction;
  failed_instruction_ = kNoInstruction;
  failed_delegate_ = kNoDelegate;
  RL_TRY(check_features());
  RL_TRY(check_files());
  if (stepping_) {
    return named(message_.fail(Code::InvalidState, "in the middle of a sequence of steps"));
  }
  RL_TRY(check_ready());
  message_.clear();
  ++run_;
  if (!is_observed()) return run<false>();
  if (tracer() == nullptr) return run<true>();
  tracer()->begin("Method::execute", name());
  const Status status = run<true>();
  if (status.ok()) trace_outputs();
  trace_memory();
  tracer()->end("Method::execute");
  return status;
}

template <bool kObserved>
Status Method::run() {
  start();
  KernelContext context(message_, scratch_, options_.workers, &blocks_, options_.generator);
  uint64_t left = options_.max_instructions;
  uint32_t pc = 0;
  while (pc < n_instructions_) {
    const uint32_t at = pc;
    if (left-- == 0) return fail_limit(at);
    const Status status = run_one<kObserved>(context, &pc);
    if (!status.ok()) return fail_at(at, status);
  }
  resized_ = resized_ || context.resized();
  return finish();
}

// Runs before the first instruction, when no view points into a replaced block any more.
void Method::start() {
  scratch_peak_ = 0;
  restore_views();
  blocks_.collect();
}

// Runs after the last instruction.
Status Method::finish() {
  if (resized_ && options_.sizes_observer != nullptr) options_.sizes_observer->sizes_changed();
  resized_ = false;
  return has_bare_tensors_ ? check_outputs() : Status();
}

template <bool kObserved>
void Method::reset_scratch() {
  if (scratch_ == nullptr) return;
  if (kObserved && scratch_->used() > scratch_peak_) scratch_peak_ = scratch_->used();
  scratch_->reset();
}

// Tells the tracer how much scratch a run took.
void Method::trace_memory() { tracer()->allocation("scratch", -1, scratch_peak_); }

// Runs the instruction at *pc and moves *pc to the next one.
template <bool kObserved>
inline Status Method::run_one(KernelContext& context, uint32_t* pc) {
  const Instruction& instruction = parts_.instructions[*pc];
  if constexpr (kObserved) begin_instruction(*pc);
  const uint32_t before = (*pc)++;
  Status status;
  switch (instruction.kind) {
    case InstructionKind::Kernel:
      if (!instruction.is_scalar) status = check_call(instruction, parts_.kernels[before]);
      if (status.ok()) status = run_kernel(context, before);
      reset_scratch<kObserved>();
      break;
    case InstructionKind::Delegate:
      status = options_.backends.code()->run(*this, instruction);
      reset_scratch<kObserved>();
      break;
    case InstructionKind::Move:
      *instruction.args[1] = *instruction.args[0];
      break;
    case InstructionKind::JumpFalse:
      status = run_jump(instruction, pc);
      break;
    case InstructionKind::Free:
      free_tensor(*instruction.args[0]);
      break;
  }
  if constexpr (kObserved) {
    if (tracer() != nullptr) end_instruction(before, status.ok());
  }
  return status;
}

// Tells the report and the tracer that an instruction begins.
void Method::begin_instruction(uint32_t pc) {
  running_pc_ = pc;
  FailureReport* report = this->report();
  if (report != nullptr) report->begin_instruction(now_ns(), pc, index_, run_);
  if (tracer() == nullptr) return;
  const Place place = place_of(pc);
  tracer()->begin_instruction(place.chain, place.instruction, parts_.instructions[pc].kind,
                              instruction_name(pc));
}

// Tells the tracer that an instruction has ended.
void Method::end_instruction(uint32_t pc, bool is_ok) {
  const Instruction& instruction = parts_.instructions[pc];
  const InstructionArguments arguments = {{instruction.args, instruction.n_args},
                                          first_written(pc)};
  tracer()->end_instruction(is_ok ? &arguments : nullptr);
}

// The arguments of an instruction from this one on are written; their number if none is.
size_t Method::first_written(uint32_t pc) const {
  const Instruction& instruction = parts_.instructions[pc];
  switch (instruction.kind) {
    case InstructionKind::Kernel:
      if (parts_.kernels[pc] == nullptr) return instruction.n_args;
      if (takes_any(*parts_.kernels[pc]))
        return instruction.n_args > 0 ? instruction.n_args - 1 : 0;
      return first_result(*parts_.kernels[pc]);
    case InstructionKind::Delegate:
      return instruction.n_inputs;
    case InstructionKind::Move:
      return 1;
    case InstructionKind::JumpFalse:
    case InstructionKind::Free:
      return instruction.n_args;
  }
  return instruction.n_args;
}

void Method::trace_outputs() {
  for (uint32_t i = 0; i < n_outputs_; ++i) tracer()->output(*parts_.outputs[i].value);
}

// Only tensors without bounds own memory; for others a free does nothing.
void Method::free_tensor(const EValue& value) {
  Tensor* tensor = value.tensor_or_null();
  if (tensor != nullptr && tensor->grows) blocks_.release(*tensor);
}

inline Status Method::run_kernel(KernelContext& context, uint32_t pc) {
  const Kernel& kernel = *parts_.kernels[pc];
  const Instruction& instruction = parts_.instructions[pc];
  context.set_kernel(&kernel);
  if (shadow_ == nullptr || kernel.self == nullptr) {
    return instruction.fn(context, instruction.args);
  }
  return kernel.self->run(kernel, context, instruction.args, ArenaShadow(arenas_, shadow_));
}

Status Method::run_delegate(const Instruction& instruction) {
  RL_TRY(check_call(instruction, nullptr));
  RL_TRY(check_delegate_outputs(instruction));
  const DelegateSlot& slot = parts_.delegates[instruction.target];
  DelegateGuard guard(instruction.args, instruction.n_args, instruction.n_inputs, parts_.seals,
                      ArenaShadow(arenas_, shadow_));
  guard.seal();
  place_.clear();
  const BackendRun run = {
      scratch_, tracer(),         &message_, &place_,           instruction.n_inputs,
      &blocks_, options_.workers, kv_cache_, options_.cancelled};
  Status status = slot.backend->execute(run, slot.handle, instruction.args, instruction.n_args);
  if (status.code() == Code::EndOfMethod) status = Code::Internal;  // only step() may return that
  if (status.ok()) {
    status = guard.check(message_, &resized_);
  } else {
    tell_place(status);
    Message more;
    if (!guard.check(more, &resized_).ok()) message_.append("; %s", more.text());
  }
  if (!status.ok()) failed_delegate_ = instruction.target;
  return status;
}

// A delegate's output must not be a constant, because its memory may be read-only.
Status Method::check_delegate_outputs(const Instruction& instruction) {
  for (uint32_t k = instruction.n_inputs; k < instruction.n_args; ++k) {
    const Tensor* output = instruction.args[k]->tensor_or_null();
    if (output == nullptr || !output->read_only) continue;
    return message_.fail(Code::InvalidProgram,
                         "output %lu is a constant, which nothing may write; export the program "
                         "again",
                         static_cast<unsigned long>(k - instruction.n_inputs));
  }
  return {};
}

// Inserts the place inside of the delegate before the backend's text.
void Method::tell_place(Status status) {
  if (message_.empty()) message_.append("%s", code_name(status.code()));
  if (!place_.empty()) message_.prepend("at %s: ", place_.text());
}

Status Method::run_jump(const Instruction& instruction, uint32_t* pc) {
  RL_TRY(check_cancelled());
  const EValue& condition = *instruction.args[0];
  bool is_true = false;
  if (condition.tag != Tag::Tensor) {
    is_true = condition.to_bool();
  } else {
    RL_TRY(check_memory(instruction, nullptr));
    is_true = all_true(*condition.t);
  }
  if (!is_true) *pc = instruction.target;
  return {};
}

// What stands before a call that may take long, or that foreign code made possible.
inline Status Method::check_call(const Instruction& instruction, const Kernel* kernel) {
  RL_TRY(check_cancelled());
  return instruction.checked ? check_memory(instruction, kernel) : Status();
}

// Jumps ask, too: so a loop ends, whatever is in it, and a chain of scalars costs nothing.
inline Status Method::check_cancelled() {
  const std::atomic<bool>* cancelled = options_.cancelled;
  if (cancelled == nullptr || !cancelled->load(std::memory_order_relaxed)) return {};
  return message_.fail(Code::Cancelled, "the run was cancelled before it");
}

Status Method::check_memory(const Instruction& instruction, const Kernel* kernel) {
  bool bare = false;
  uint32_t k = 0;
  for (; k < instruction.n_args && !bare; ++k) {
    const EValue& value = *instruction.args[k];
    if (value.tag == Tag::Tensor) {
      bare = is_bare(value.t);
    } else if (value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList) {
      for (size_t j = 0; j < value.size() && !bare; ++j) bare = is_bare(value.tensor_at(j));
    }
  }
  if (!bare && kernel == nullptr) return {};
  if (!bare) return check_written(*kernel, instruction.args, instruction.n_args, message_);
  return message_.fail(Code::InvalidProgram, "argument %lu has no memory: nothing gave it any",
                       static_cast<unsigned long>(k - 1));
}

Status Method::fail_limit(uint32_t pc) {
  return fail_at(pc, message_.fail(Code::InvalidProgram,
                                   "%llu instructions have run; a loop that does not end? (see "
                                   "max_instructions)",
                                   static_cast<unsigned long long>(options_.max_instructions)));
}

// Inserts the failed instruction before the message, and stores its index.
Status Method::fail_at(uint32_t pc, Status status) {
  const Place place = place_of(pc);
  const StringView what = instruction_name(pc);
  failed_pc_ = pc;
  failed_instruction_ = place.instruction;
  if (message_.empty()) message_.append("%s", code_name(status.code()));
  message_.prepend("instruction %lu (%.*s): ", static_cast<unsigned long>(place.instruction),
                   what.len(), what.data());
  return named(status);
}

Status Method::step() {
  if (report() == nullptr) return execute_one();
  const RunningMethod running(*this);
  const Status status = execute_one();
  running_pc_ = kNoInstruction;
  if (!status.ok() && status.code() != Code::EndOfMethod) report_run(status);
  return status;
}

Status Method::execute_one() {
  failed_pc_ = kNoInstruction;
  failed_instruction_ = kNoInstruction;
  failed_delegate_ = kNoDelegate;
  RL_TRY(check_features());
  RL_TRY(check_files());
  if (!stepping_) RL_TRY(check_ready());
  if (pc_ >= n_instructions_) return Code::EndOfMethod;
  if (!stepping_) {
    start();
    ++run_;
    if (tracer() != nullptr) tracer()->begin("Method::execute", name());
  }
  stepping_ = true;
  message_.clear();
  KernelContext context(message_, scratch_, options_.workers, &blocks_, options_.generator);
  uint32_t next = pc_;
  Status status;
  if (steps_++ >= options_.max_instructions) {
    status = fail_limit(pc_);
  } else {
    status = is_observed() ? run_one<true>(context, &next) : run_one<false>(context, &next);
    if (!status.ok()) status = fail_at(pc_, status);
  }
  resized_ = resized_ || context.resized();
  failed_step_ = !status.ok();
  if (!failed_step_) pc_ = next;
  if (!failed_step_ && pc_ < n_instructions_) return status;
  if (tracer() != nullptr) {
    if (!failed_step_) trace_outputs();
    trace_memory();
    tracer()->end("Method::execute");
  }
  return failed_step_ ? status : finish();
}

Status Method::reset() {
  if (stepping_ && !failed_step_ && pc_ < n_instructions_) {
    return named(message_.fail(Code::InvalidState,
                               "%lu instructions are left; step to the end before a reset",
                               static_cast<unsigned long>(n_instructions_ - pc_)));
  }
  stepping_ = false;
  failed_step_ = false;
  pc_ = 0;
  steps_ = 0;
  return {};
}

}  // namespace rushlight
