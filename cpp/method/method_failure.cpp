// What a method tells of a failure in its report (MethodOptions::failure).
#include "rushlight/method/method.h"
#include "rushlight/platform/platform.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

void Method::report_load(const MethodMemory& memory, Status status) const {
  FailureReport& report = *options_.failure.report;
  report.clear();
  const bool is_missing = status.code() == Code::OperatorMissing;
  describe(is_missing ? first_missing() : failed_pc_, failed_delegate_, report);
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
  FailureReport& report = *options_.failure.report;
  report.clear();
  describe(kNoInstruction, kNoDelegate, report);
  report.input = static_cast<uint32_t>(i);
  if (tensor != nullptr) {
    EValue value;
    value.tag = Tag::Tensor;
    value.t = const_cast<Tensor*>(tensor);
    report.add_value(static_cast<uint32_t>(meta_.plan().inputs()[i]), value, false);
  }
  tell_failure(FailurePhase::Input, status);
}

void Method::report_refusal(Code code, const char* text) {
  if (options_.failure.report == nullptr) return;
  options_.failure.report->clear();
  describe(kNoInstruction, kNoDelegate, *options_.failure.report);
  tell_failure(FailurePhase::Input, message_.fail(code, "%s", text));
}

void Method::report_run(Status status) const {
  FailureReport& report = *options_.failure.report;
  report.clear();
  describe(failed_pc_, failed_delegate_, report);
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

const FailureReport* Method::report_crash(uint32_t signal, uint64_t address) const {
  FailureReport* report = options_.failure.report;
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
  if (report->delegate != kNoDelegate && place_.entered() != DelegatePlace::kNowhere) {
    DelegatePlace place;
    place.set(place_.entered());
    set_text(report->place, StringView(place.text()));
  }
  report->seal();
  return report;
}

// Writes which method, instruction and delegate this is, and with which arguments.
void Method::describe(uint32_t pc, uint32_t delegate, FailureReport& report) const {
  report.program = identity_;
  report.program_bytes = program_bytes_;
  report.time_ns = now_ns();
  report.method_index = index_;
  set_text(report.method, name());
  report.delegate = delegate;
  if (pc < n_instructions_ && parts_.instructions != nullptr) {
    const Instruction& instruction = parts_.instructions[pc];
    const Place place = place_of(pc);
    report.chain = place.chain;
    report.instruction = place.instruction;
    report.kind = static_cast<uint8_t>(instruction.kind);
    if (instruction.kind == InstructionKind::Delegate) report.delegate = instruction.target;
    if (instruction.kind == InstructionKind::Kernel) {
      meta_.operator_name(instruction.target).join(report.name, sizeof(report.name));
    }
    const size_t written = first_written(pc);
    for (uint32_t k = 0; k < instruction.n_args; ++k) {
      const EValue* value = instruction.args[k];
      report.add_value(static_cast<uint32_t>(value - parts_.values), *value, k >= written);
    }
  }
  if (report.delegate == kNoDelegate) return;
  set_text(report.name, meta_.delegate_id(report.delegate));
  set_text(report.place, StringView(place_.text()));
}

// The first instruction without a kernel.
uint32_t Method::first_missing() const {
  uint32_t cursor = 0;
  MissingOperator missing;
  return next_missing_operator(&cursor, &missing) ? cursor - 1 : kNoInstruction;
}

}  // namespace rushlight
