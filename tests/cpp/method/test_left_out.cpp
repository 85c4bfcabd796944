// What a build may leave out: a method that is asked for it does it, or refuses by its name.
#include "check.h"
#include "program_builder.h"
#include "rushlight/trace/recorder.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

std::vector<uint8_t> one_instruction() {
  Plan plan;
  plan.call("test::nothing", {}, "");
  ProgramFile file;
  file.plans = {plan};
  return file.bytes();
}

// A run or a load that was given `what`, of which the build has `has`.
void check_asked(bool has, Status status, const Message& message, const char* what) {
  CHECK(status.ok() == has);
  if (has) return;
  CHECK(status.code() == Code::NotSupported);
  CHECK(says(message, what));
}

void test_tracer() {
  constexpr char kWhat[] =
      "this runtime was built without tracing: build it with "
      "RUSHLIGHT_TRACING=ON";
  std::vector<uint8_t> memory(2 * TraceRecorder::kLeastMemory);
  TraceRecorder recorder({memory.data(), memory.size()});
  MethodOptions options = {};
  options.tracer = &recorder;
  Loaded loaded(one_instruction());
  check_asked(kHasTracing, loaded.load("forward", options), loaded.method.message(), kWhat);
  CHECK((recorder.first() != nullptr) == kHasTracing);

  Loaded later(one_instruction());
  CHECK(later.load().ok() && later.method.execute().ok());
  recorder.clear();
  later.method.set_tracer(&recorder);
  check_asked(kHasTracing, later.method.execute(), later.method.message(), kWhat);
  check_asked(kHasTracing, later.method.step(), later.method.message(), kWhat);
  CHECK((recorder.first() != nullptr) == kHasTracing);
  CHECK(later.method.reset().ok());
  later.method.set_tracer(nullptr);
  CHECK(later.method.execute().ok());
}

void test_failure_report() {
  FailureReport report;
  MethodOptions options = {};
  options.failure.report = &report;
  Loaded loaded(one_instruction());
  check_asked(kHasFailureReports, loaded.load("forward", options), loaded.method.message(),
              "this runtime was built without them: build it with RUSHLIGHT_FAILURE_REPORTS=ON");
  loaded.method.report_refusal(Code::InvalidArgument, "a batch of 0");
  CHECK(report.has_failure() == kHasFailureReports);
  CHECK((loaded.method.report_crash(11, 0, true) != nullptr) == kHasFailureReports);
}

}  // namespace

int main() {
  test_tracer();
  test_failure_report();
  return check_result();
}
