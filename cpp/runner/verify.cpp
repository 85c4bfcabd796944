#include "rushlight/runner/verify.h"

#include <cstdio>

namespace rushlight {
namespace {

void print_report(StringView method, size_t index, StringView name, const CaseReport& report) {
  const char* result = !report.passed ? "failed" : report.compared ? "passed" : "ran";
  std::printf("%.*s %zu%s%.*s: %s", method.len(), method.data(), index, name.empty() ? "" : " ",
              name.len(), name.data(), result);
  if (report.compared) {
    std::printf("; greatest error %g, relative %g; %llu NaN", report.absolute, report.relative,
                static_cast<unsigned long long>(report.n_nan));
  } else if (report.passed) {
    std::printf("; no outputs are expected");
  }
  std::printf("%s%s\n", report.message.empty() ? "" : "; ", report.message.text());
}

}  // namespace

bool verify_and_print(Module& module, const std::string& method,
                      const ToleranceOverride& tolerance) {
  const Bundle* bundle = module.bundle();
  size_t cases = 0;
  size_t failed = 0;
  VerifyOptions options;
  options.tolerance = tolerance;
  for (size_t i = 0; bundle != nullptr && i < bundle->n_suites(); ++i) {
    const StringView name = bundle->method(i);
    if (!method.empty() && name != StringView(method.c_str())) continue;
    const size_t first = bundle->first_case(i);
    for (size_t k = first; k < first + bundle->n_cases(i); ++k) {
      Message message;
      const Result<BundledCase> test_case = bundle->find(name, k, message);
      CaseReport report;
      if (!verify(module, name, k, report, options).ok()) report.passed = false;
      print_report(name, k, test_case.ok() ? test_case.value().name() : StringView(), report);
      ++cases;
      if (!report.passed) ++failed;
    }
  }
  if (cases == 0) {
    std::fprintf(stderr, "rushlight_runner: %s\n",
                 bundle == nullptr
                     ? "the program has no test cases: it is no bundled program (.bpte)"
                     : "the bundled program has no test cases of this method");
    return false;
  }
  std::printf("%zu of %zu test cases passed\n", cases - failed, cases);
  return failed == 0;
}

}  // namespace rushlight
