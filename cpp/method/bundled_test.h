// Runs a test case of a bundled program on a loaded method, and compares its outputs with those
// that are expected. Nothing is allocated.
//
//   CaseReport report;
//   RL_TRY(run_case(method, test_case, {}, report));  // report.message has the reason
//   if (!report.passed) return complain(report.message.text());
//
// Outputs are compared as ExecuTorch compares them: the same dtype, sizes and layout, and every
// element within the tolerance; NaN equals NaN, an infinity only itself. ExecuTorch compares whole
// numbers, bfloat16 and complex numbers byte for byte; here bfloat16 and complex numbers are
// compared like the other floating-point numbers, and whole numbers by atol.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/method/method.h"
#include "rushlight/program/bundle.h"

namespace rushlight {

// What takes the place of the tolerances in the file; negative: nothing does.
struct ToleranceOverride {
  double rtol = -1;
  double atol = -1;
};

struct CaseReport {
  bool passed = false;
  bool started = false;   // the method has run, if only in part
  bool compared = false;  // false if the run failed, or the file has no outputs for the case
  uint64_t n_elements = 0;
  uint64_t n_wrong = 0;  // out of tolerance
  uint64_t n_nan = 0;    // NaN where a number is expected
  // The greatest errors. Infinite where NaN or an infinity comes out for something else, or, the
  // relative one, where 0 is expected.
  double absolute = 0;
  double relative = 0;
  // The element with the greatest error.
  size_t output = 0;
  uint8_t rank = 0;
  int32_t index[kMaxRank] = {};
  double got = 0;
  double expected = 0;
  Message message;  // why the case failed; empty if it passed
};

// Sets the inputs, runs, compares. Returns what the method returns if it refuses the inputs or
// fails, InvalidProgram for a case that cannot be read, and Ok otherwise, also if outputs depart.
Status run_case(Method& method, const BundledCase& test_case, const ToleranceOverride& tolerance,
                CaseReport& report);

// The parts of run_case().
Status set_case_inputs(Method& method, const BundledCase& test_case, Message& message);
Status compare_outputs(const Method& method, const BundledCase& test_case,
                       const ToleranceOverride& tolerance, CaseReport& report);

}  // namespace rushlight
