// Tests a module that was opened from a bundled program (.bpte) by the cases in it.
//
//   rushlight::Module module;
//   if (!module.open("model.bpte").ok()) return complain(module.message().text());
//   rushlight::CaseReport report;
//   if (!verify(module, "forward", 0, report).ok() || !report.passed)
//     return complain(report.message.text());
#pragma once

#include "rushlight/method/bundled_test.h"
#include "rushlight/module/module.h"

namespace rushlight {

struct VerifyOptions {
  ToleranceOverride tolerance;
  // The method that runs; empty: the one whose case it is. Forms of a method are methods of their
  // own, "forward@cpu".
  StringView plan;
};

// Runs case `index` of a method as if the module had just been loaded: its state is initialised and
// its random generator starts anew. Loads the method unless it is loaded, and allocates nothing
// else but, once, the list of its state. Returns NotFound if the module has no test cases,
// InvalidArgument if it has no such case, and otherwise as run_case() does; report.message has the
// reason.
Status verify(Module& module, StringView method, size_t index, CaseReport& report,
              const VerifyOptions& options = {});

}  // namespace rushlight
