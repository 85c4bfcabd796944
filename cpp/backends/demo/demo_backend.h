// The demo backend, `BackendWithCompilerDemo`: the worked example of a backend. Its compiler half
// (src/rushlight/backends/demo) writes a part of a graph as a few lines of text, this half parses
// them once and interprets them. It computes in float32 with plain loops; speed is no goal.
//
//   demo 1                       the version
//   in 2                         values %0 and %1 are inputs
//   data %2 demo/5b1c 3 4        value %2 is named data of these sizes
//   %3 = linear %0 %2 : 12       an instruction, and the most elements that it gives
//   %4 = sin %3 : 12
//   out %4
//
// Instructions: sin x; add x y; mul x y (equal sizes, or one of them one element); mm x y;
// linear x w [b]. They are counted from 0: that number is what an error or an event is reported
// under. The options "fail_at" and "fail_init_at" (an int) make one of them fail when it runs or
// when it is loaded, to try what becomes of an error.
#pragma once

#include "rushlight/delegate/backend.h"

namespace rushlight {

class DemoBackend final : public Backend {
 public:
  static constexpr const char* kId = "BackendWithCompilerDemo";

  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void*) override {}  // all that it has lies in the method's memory
};

}  // namespace rushlight
