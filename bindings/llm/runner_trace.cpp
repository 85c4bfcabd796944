// What a runner of language models records of its steps. The recorder is read between steps.
#include "bindings.h"
#include "failure.h"
#include "gil.h"
#include "llm/runner.h"

namespace rushlight::python {
namespace {

namespace nb = nanobind;

// No step runs while it exists.
class Turn {
 public:
  explicit Turn(RunnerHandle& self) {
    const GilRelease release;
    turn_ = std::make_unique<llm::Scheduler::Turn>(self.runner.scheduler());
  }

 private:
  std::unique_ptr<llm::Scheduler::Turn> turn_;
};

SessionTrace& trace_of(RunnerHandle& self) {
  if (self.trace == nullptr) {
    fail(Code::InvalidState, "nothing is traced: load the program with trace=True");
  }
  return *self.trace;
}

}  // namespace

void init_runner_trace(nb::class_<RunnerHandle>& runner) {
  runner
      .def("trace_dump",
           [](RunnerHandle& self) {
             const SessionTrace& trace = trace_of(self);
             const Turn turn(self);
             return trace.content();
           })
      .def("trace_dropped",
           [](RunnerHandle& self) {
             const SessionTrace& trace = trace_of(self);
             const Turn turn(self);
             return trace.dropped();
           })
      .def("trace_clear", [](RunnerHandle& self) {
        SessionTrace& trace = trace_of(self);
        const Turn turn(self);
        trace.clear();
      });
}

}  // namespace rushlight::python
