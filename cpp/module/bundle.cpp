#include "rushlight/module/bundle.h"

namespace rushlight {

Status verify(Module& module, StringView method, size_t index, CaseReport& report,
              const VerifyOptions& options) {
  report = CaseReport();
  if (module.bundle() == nullptr) {
    return report.message.fail(Code::NotFound,
                               "the program has no test cases: it is no bundled program (.bpte)");
  }
  Result<BundledCase> test_case = module.bundle()->find(method, index, report.message);
  if (!test_case.ok()) return test_case.status();
  Result<Method*> loaded = module.method(options.plan.empty() ? method : options.plan);
  Status status = loaded.status();
  if (status.ok()) status = module.reset_state();
  if (!status.ok()) {
    report.message = module.message();
    return status;
  }
  module.manual_seed(Generator::kDefaultSeed);
  Tracer* tracer = module.options().tracer;
  if (tracer != nullptr) tracer->set_bundled_case(static_cast<int32_t>(index));
  status = run_case(*loaded.value(), test_case.value(), options.tolerance, report);
  if (tracer != nullptr) tracer->set_bundled_case(-1);
  return status;
}

}  // namespace rushlight
