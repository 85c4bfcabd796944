#include "method/timing.h"

#include "rushlight/platform/platform.h"

namespace rushlight::python {

void TimingTracer::start(const std::string& method) {
  method_ = method;
  events_.clear();
}

void TimingTracer::begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                                     StringView name) {
  current_ = events_.size();
  events_.push_back({chain, instruction, kind, std::string(name.data(), name.size()), 0, {}});
  began_ = now_ns();
}

void TimingTracer::end_instruction(uint32_t, uint32_t, EValue* const*, uint32_t) {
  if (current_ < events_.size()) events_[current_].ns = now_ns() - began_;
  current_ = kNone;
}

void TimingTracer::delegate_event(const char* id, int64_t id_number, uint64_t start,
                                  uint64_t stop) {
  if (current_ >= events_.size()) return;  // in init: of no run
  Event event = events_[current_];
  event.ns = stop > start ? stop - start : 0;
  event.inside = id != nullptr ? std::string(id) : std::to_string(id_number);
  events_.push_back(std::move(event));
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
