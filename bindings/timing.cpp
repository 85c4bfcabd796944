#include "timing.h"

#include "rushlight/platform/platform.h"

namespace rushlight::python {

void TimingTracer::start(const std::string& method) {
  method_ = method;
  events_.clear();
}

void TimingTracer::begin_instruction(uint32_t, uint32_t instruction, InstructionKind kind,
                                     StringView name) {
  events_.push_back({instruction, kind, std::string(name.data(), name.size()), 0});
  began_ = now_ns();
}

void TimingTracer::end_instruction(uint32_t, uint32_t, EValue* const*, uint32_t) {
  if (!events_.empty()) events_.back().ns = now_ns() - began_;
}

const char* kind_name(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::Kernel:
      return "kernel";
    case InstructionKind::Delegate:
      return "delegate";
    case InstructionKind::Move:
      return "move";
    case InstructionKind::JumpFalse:
      return "jump";
    case InstructionKind::Free:
      return "free";
  }
  return "?";
}

}  // namespace rushlight::python
