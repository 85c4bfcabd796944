// A tracer that remembers how long each instruction of the last run took.
#pragma once

#include <string>
#include <vector>

#include "rushlight/events/tracer.h"

namespace rushlight::python {

class TimingTracer : public Tracer {
 public:
  struct Event {
    uint32_t instruction;  // index in its chain
    InstructionKind kind;
    std::string name;  // of the operator or the backend; empty for the other kinds
    uint64_t ns;
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
  void delegate_event(const char*, int64_t, uint64_t, uint64_t) override {}

 private:
  std::string method_;
  std::vector<Event> events_;
  uint64_t began_ = 0;
};

const char* kind_name(InstructionKind kind);

}  // namespace rushlight::python
