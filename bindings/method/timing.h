// A tracer that remembers how long each instruction of the last run took.
#pragma once

#include <string>
#include <vector>

#include "rushlight/events/tracer.h"

namespace rushlight::python {

class TimingTracer : public Tracer {
 public:
  struct Event {
    uint32_t chain;
    uint32_t instruction;  // index in its chain
    InstructionKind kind;
    std::string name;  // of the operator or the backend; empty for the other kinds
    uint64_t ns;
    std::string inside;  // of a stretch inside a delegate: the backend's own id for it
  };

  // Forgets what was recorded: from here on events belong to a run of `method`.
  void start(const std::string& method);
  const std::string& method() const { return method_; }
  const std::vector<Event>& events() const { return events_; }

  void begin(const char*) override {}
  void end(const char*) override {}
  void begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                         StringView name) override;
  void end_instruction(uint32_t chain, uint32_t instruction, EValue* const* args,
                       uint32_t n_args) override;
  void delegate_event(const char* id, int64_t id_number, uint64_t start, uint64_t stop) override;

 private:
  std::string method_;
  std::vector<Event> events_;
  uint64_t began_ = 0;
  static constexpr size_t kNone = SIZE_MAX;
  size_t current_ = kNone;  // the event of the instruction that runs
};

const char* kind_name(InstructionKind kind);

}  // namespace rushlight::python
