// What a method tells of a failure in its report (MethodOptions::failure).
#include "rushlight/method/method.h"
#include "rushlight/platform/platform.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

void Method::report_load(const MethodMemory& memory, Status status) const {
  FailureReport& report = *this->report();
  report.clear();
  uint32_t pc = failed_pc_;
  uint32_t delegate = failed_delegate_;
  if (status.code() == Code::OperatorMissing) pc = first_missing();
  uint32_t cursor = 0;
  MissingBackend missing;
  const bool is_sought = status.code() == Code::NotFound && delegate == kNoDelegate;
  if (is_sought && next_missing_backend(&cursor, &missing)) delegate = missing.delegate;
  describe(pc, delegate, report);
  describe_details(pc, report);
  const bool is_memory = status.code() == Code::MemoryAllocationFailed;
  if (is_memory && parts_.instructions == nullptr) {
    report.add_memory(FailureMemory::Structures, 0, structure_bytes(meta_),
                      memory.structures->left());
  }
  for (size_t k = 0; is_memory && k < meta_.n_arenas(); ++k) {
    const uint64_t bytes = k < memory.arenas.size() ? memory.arenas[k].size() : 0;
    report.add_memory(FailureMemory::Arena, static_cast<uint32_t>(k + 1), meta_.arena_bytes(k),
                      bytes);
  }
  tell_failure(FailurePhase::Load, status);
}

void Method::report_input(size_t i, const Tensor* tensor, Status status) const {
  FailureReport& report = *this->report();
  report.clear();
  describe(kNoInstruction, kNoDelegate, report);
  describe_details(kNoInstruction, report);
  report.input = static_cast<uint32_t>(i);
  if (tensor != nullptr) {
    EValue value;
    value.tag = Tag::Tensor;
    value.t = const_cast<Tensor*>(tensor);
    report.add_value(static_cast<uint32_t>(meta_.plan().inputs()[i]), value, 0);
  }
  tell_failure(FailurePhase::Input, status);
}

void Method::report_refusal(Code code, const char* text) {
  if (report() == nullptr) return;
  report()->clear();
  describe(kNoInstruction, kNoDelegate, *report());
  describe_details(kNoInstruction, *report());
  tell_failure(FailurePhase::Input, message_.fail(code, "%s", text));
}

void Method::report_run(Status status) const {
  FailureReport& report = *this->report();
  report.clear();
  describe(failed_pc_, failed_delegate_, report);
  describe_details(failed_pc_, report);
  tell_failure(FailurePhase::Run, status);
}

void Method::tell_failure(FailurePhase phase, Status status) const {
  const FailureHook& hook = options_.failure;
  hook.report->phase = static_cast<uint8_t>(phase);
  hook.report->code = static_cast<uint32_t>(status.code());
  set_text(hook.report->message, StringView(message_.text()));
  hook.report->seal();
  if (hook.on_failure != nullptr) hook.on_failure(*hook.report, hook.context);
}

const FailureReport* Method::report_crash(uint32_t signal, uint64_t address,
                                          bool has_details) const {
  FailureReport* report = this->report();
  if (report == nullptr) return nullptr;
  report->clear();
  FailurePhase phase = state_ == State::Ready ? FailurePhase::Run : FailurePhase::Load;
  if (running_input_ != UINT32_MAX) phase = FailurePhase::Input;
  report->phase = static_cast<uint8_t>(phase);
  report->code = static_cast<uint32_t>(Code::Internal);
  report->signal = signal;
  report->address = address;
  report->input = running_input_;
  describe(running_pc_, failed_delegate_, *report);
  if (has_details) describe_details(running_pc_, *report);
  if (report->delegate != kNoDelegate && place_.entered() != DelegatePlace::kNowhere) {
    DelegatePlace place;
    place.set(place_.entered());
    set_text(report->place, StringView(place.text()));
  }
  report->seal();
  return report;
}

// Writes which method, instruction and delegate this is, in numbers.
void Method::describe(uint32_t pc, uint32_t delegate, FailureReport& report) const {
  report.program = identity_;
  report.program_bytes = program_bytes_;
  report.time_ns = now_ns();
  report.method_index = index_;
  report.delegate = delegate;
  if (pc < n_instructions_ && parts_.instructions != nullptr) {
    const Instruction& instruction = parts_.instructions[pc];
    const Place place = place_of(pc);
    report.chain = place.chain;
    report.instruction = place.instruction;
    report.kind = static_cast<uint8_t>(instruction.kind);
    if (instruction.kind == InstructionKind::Delegate) report.delegate = instruction.target;
  }
  if (report.delegate != kNoDelegate) set_text(report.place, StringView(place_.text()));
}

// Writes the names, and the arguments of the instruction.
void Method::describe_details(uint32_t pc, FailureReport& report) const {
  set_text(report.method, name());
  if (report.delegate != kNoDelegate) set_text(report.name, meta_.delegate_id(report.delegate));
  if (pc >= n_instructions_ || parts_.instructions == nullptr) return;
  const Instruction& instruction = parts_.instructions[pc];
  if (instruction.kind == InstructionKind::Kernel) {
    meta_.operator_name(instruction.target).join(report.name, sizeof(report.name));
  }
  const size_t written = first_written(pc);
  for (uint32_t k = 0; k < instruction.n_args; ++k) {
    describe_value(instruction.args[k], k >= written ? FailureValue::kWritten : 0, report);
  }
}

// An argument and, of a list of tensors, its items.
void Method::describe_value(const EValue* value, uint8_t flags, FailureReport& report) const {
  report.add_value(static_cast<uint32_t>(value - parts_.values), *value, flags);
  if (value->tag != Tag::TensorList && value->tag != Tag::OptionalTensorList) return;
  const auto* items = static_cast<const EValue* const*>(value->list.items);
  for (size_t k = 0; k < value->size(); ++k) {
    if (items[k] == nullptr) continue;  // None
    report.add_value(static_cast<uint32_t>(items[k] - parts_.values), *items[k],
                     flags | FailureValue::kItem);
  }
}

// The first instruction without a kernel.
uint32_t Method::first_missing() const {
  uint32_t cursor = 0;
  MissingOperator missing;
  return next_missing_operator(&cursor, &missing) ? cursor - 1 : kNoInstruction;
}

}  // namespace rushlight
