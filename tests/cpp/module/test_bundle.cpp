// Bundled programs: opened as the program in them, and tested by their cases.
#include "rushlight/module/bundle.h"

#include <cmath>
#include <cstdio>

#include "bundle_builder.h"
#include "check.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

ModuleOptions with_test_kernels() {
  ModuleOptions options;
  options.kernels = &test_kernels();
  return options;
}

// A module over a bundled program in memory.
struct Opened {
  explicit Opened(std::vector<uint8_t> bytes) : file(std::move(bytes)) {
    status = module.open_memory(file.data(), file.size(), with_test_kernels());
  }
  bool passes(size_t index, const VerifyOptions& options = {}) {
    status = verify(module, "forward", index, report, options);
    return status.ok() && report.passed;
  }

  std::vector<uint8_t> file;
  Module module;
  Status status;
  CaseReport report;
};

const std::vector<int32_t> kSizes = {2, 3};

// x and what x + 2x gives.
std::vector<Table> x() { return {floats(kSizes, {1, 2, 3, 4, 5, 6}).value()}; }
std::vector<Table> expected(const std::vector<float>& values) {
  return {floats(kSizes, values).value()};
}

Opened opened(const std::vector<BundledTest>& tests) {
  return Opened(BundleFile{file_of(add_plan()), {{"forward", tests}}}.bytes());
}

void test_program_inside() {
  const char* path = "test_bundle.bpte";
  const std::vector<uint8_t> file = add_bundle();
  std::FILE* to = std::fopen(path, "wb");
  CHECK(to != nullptr && std::fwrite(file.data(), 1, file.size(), to) == file.size());
  if (to != nullptr) std::fclose(to);
  for (const bool map : {true, false}) {
    ModuleOptions options = with_test_kernels();
    options.map = map;
    Module module, copy;
    CHECK(module.open(path, options).ok() && module.clone(copy).ok());
    for (Module* one : {&module, &copy}) {
      CHECK(one->bundle() != nullptr && one->bundle()->n_suites() == 1);
      CHECK(one->bundle()->method(0) == "forward" && one->bundle()->n_cases(0) == 2);
      CHECK(one->program().image().size() == file_of(add_plan()).size());
      CaseReport report;
      CHECK(verify(*one, "forward", 0, report).ok() && report.passed && report.n_elements == 6);
    }
  }
  std::remove(path);
}

void test_report() {
  Opened bundle(add_bundle());
  CHECK(bundle.passes(0) && bundle.report.compared && bundle.report.absolute == 0);
  CHECK(!bundle.passes(1) && bundle.status.ok());
  const CaseReport& report = bundle.report;
  CHECK(report.n_wrong == 1 && report.n_elements == 6 && report.n_nan == 0);
  CHECK(report.absolute == 1 && report.relative == 1.0 / 19);
  CHECK(report.output == 0 && report.rank == 2 && report.index[0] == 1 && report.index[1] == 2);
  CHECK(report.got == 18 && report.expected == 19);
  CHECK(says(report.message, "output 0 at [1, 2] is 18, expected is 19; 1 of 6 elements depart"));
  CHECK(verify(bundle.module, "forward", 2, bundle.report).code() == Code::InvalidArgument);
  CHECK(says(report.message, "there is no test case 2 of method 'forward', which has 2"));
  CHECK(verify(bundle.module, "other", 0, bundle.report).code() == Code::InvalidArgument);
  Module plain;
  const std::vector<uint8_t> file = file_of(add_plan());
  CHECK(plain.open_memory(file.data(), file.size(), with_test_kernels()).ok());
  CHECK(plain.bundle() == nullptr);
  CHECK(verify(plain, "forward", 0, bundle.report).code() == Code::NotFound);
}

void test_tolerances() {
  const std::vector<float> off = {3, 6, 9, 12, 15, 19};
  Opened bundle = opened({{x(), expected(off)},
                          {x(), expected(off), "", {0}, {1}},
                          {x(), expected(off), "", {0.06}, {0}},
                          {x(), expected(off), "", {0.05}, {0}},
                          {x(), expected({3.00002f, 6, 9, 12, 15, 18})}});
  const bool passes[] = {false, true, true, false, true};
  for (size_t i = 0; i < 5; ++i) CHECK(bundle.passes(i) == passes[i]);
  VerifyOptions options;
  options.tolerance = {0, 1};
  CHECK(bundle.passes(0, options));
  options.tolerance = {0, 0};
  for (size_t i = 0; i < 5; ++i) CHECK(!bundle.passes(i, options));
}

// NaN equals NaN, and an infinity itself, whatever the tolerance.
void test_what_is_no_number() {
  const float inf = INFINITY, nan = NAN;
  const std::vector<Table> special = {floats(kSizes, {nan, inf, -inf, 0, 1, inf}).value()};
  Opened bundle = opened({{special, expected({nan, inf, -inf, 0, 3, inf})},
                          {special, expected({1, inf, -inf, 0, 3, inf}), "", {}, {100}},
                          {special, expected({nan, -inf, -inf, 0, 3, inf}), "", {1}, {100}},
                          {special, expected({nan, inf, -inf, 1, 3, 7}), "", {0}, {1}}});
  CHECK(bundle.passes(0) && bundle.report.absolute == 0);
  CHECK(!bundle.passes(1) && bundle.report.n_nan == 1 && bundle.report.n_wrong == 1);
  CHECK(std::isinf(bundle.report.absolute) && bundle.report.index[1] == 0);
  CHECK(!bundle.passes(2) && bundle.report.n_wrong == 1 && bundle.report.n_nan == 0);
  CHECK(!bundle.passes(3) && bundle.report.n_wrong == 1 && bundle.report.expected == 7);
}

void test_cases_that_do_not_fit() {
  const Table scalar = Table().choice(0, 2, Table().scalar<int64_t>(0, 5));
  BundledTensor whole = floats(kSizes, {3, 6, 9, 12, 15, 18});
  whole.dtype = 3;
  BundledTensor transposed = floats(kSizes, {3, 6, 9, 12, 15, 18});
  transposed.dim_order = {1, 0};
  Opened bundle = opened({{{}, expected({})},
                          {{scalar}, expected({3, 6, 9, 12, 15, 18})},
                          {{floats({3, 3}, std::vector<float>(9)).value()}, {}},
                          {x(), {whole.value()}},
                          {x(), {floats({6}, {3, 6, 9, 12, 15, 18}).value()}},
                          {x(), {transposed.value()}},
                          {x(), {scalar}},
                          {x(), {x()[0], x()[0]}},
                          {x(), {}}});
  const char* messages[] = {"the case has 0 inputs, forward takes 1",
                            "input 0",
                            "input 0",
                            "output 0 is float32 [2, 3], expected is int32 [2, 3]",
                            "output 0 is float32 [2, 3], expected is float32 [6]",
                            "output 0 lies in memory in another dim order",
                            "output 0 is Tensor, expected is Int",
                            "2 outputs are expected, forward has 1"};
  for (size_t i = 0; i < 8; ++i) {
    CHECK(!bundle.passes(i) && says(bundle.report.message, messages[i]));
    CHECK(bundle.status.ok() == (i >= 3));
  }
  CHECK(bundle.passes(8) && !bundle.report.compared);
}

// Tensors of a damaged file are refused, each by what is wrong.
void test_damaged_tensors() {
  const std::vector<float> six(6);
  BundledTensor bytes = floats(kSizes, {1, 2, 3, 4, 5}), dtype = floats(kSizes, six), rank = dtype,
                negative = dtype, order = dtype, short_order = dtype, moved = dtype;
  dtype.dtype = 19;
  rank.sizes.assign(17, 1);
  negative.sizes = {-2, -3};
  order.dim_order = {1, 1};
  short_order.dim_order = {0};
  moved.skew = 2;
  const Table unknown = Table().choice(0, 9, Table());
  Opened bundle = opened({{{bytes.value()}, {}},
                          {{dtype.value()}, {}},
                          {{rank.value()}, {}},
                          {{negative.value()}, {}},
                          {{order.value()}, {}},
                          {{short_order.value()}, {}},
                          {{unknown}, {}},
                          {{moved.value()}, {}}});
  const char* messages[] = {"has 20 bytes for a float32 tensor of 6 elements of 4",
                            "has a dtype that this runtime cannot hold",
                            "has more dimensions than a tensor can have",
                            "has sizes or a dim order that no tensor has",
                            "has sizes or a dim order that no tensor has",
                            "has a dim order of another length",
                            "is of kind 9, which is not known",
                            "begins at an address that its elements cannot have"};
  for (size_t i = 0; i < 8; ++i) {
    CHECK(!bundle.passes(i) && bundle.status.code() == Code::InvalidProgram);
    CHECK(says(bundle.report.message, "input 0: ") && says(bundle.report.message, messages[i]));
  }
}

void test_damaged_files() {
  const std::vector<uint8_t> program = file_of(add_plan());
  Opened empty(BundleFile{{}, {}}.bytes());
  CHECK(empty.status.code() == Code::InvalidProgram);
  CHECK(says(empty.module.message(), "has no program in it"));
  Opened moved(BundleFile{program, {}, 8}.bytes());
  CHECK(says(moved.module.message(), "at an address that is no multiple of 16"));
  Opened nested(BundleFile{add_bundle(), {}}.bytes());
  CHECK(says(nested.module.message(), "this is a bundled program (.bpte), with a program in it"));
  const std::vector<uint8_t> whole = add_bundle();
  for (size_t size = 8; size < whole.size(); size += 7) {
    Opened cut(std::vector<uint8_t>(whole.begin(), whole.begin() + static_cast<long>(size)));
    CHECK(cut.status.code() == Code::InvalidProgram);
  }
}

// ExecuTorch writes one suite for a method, and reads the first; more are counted on.
void test_several_suites() {
  const BundledTest right = {x(), expected({3, 6, 9, 12, 15, 18})};
  const BundledTest wrong = {x(), expected({3, 6, 9, 12, 15, 0})};
  Opened bundle(BundleFile{file_of(add_plan()),
                           {{"forward", {right}}, {"none", {}}, {"forward", {wrong, right}}}}
                    .bytes());
  CHECK(bundle.passes(0) && !bundle.passes(1) && bundle.passes(2));
  CHECK(bundle.module.bundle()->first_case(2) == 1);
  CHECK(!bundle.passes(3) && says(bundle.report.message, "which has 3"));
}

}  // namespace

int main() {
  test_program_inside();
  test_report();
  test_tolerances();
  test_what_is_no_number();
  test_cases_that_do_not_fit();
  test_damaged_tensors();
  test_damaged_files();
  test_several_suites();
  return check_result();
}
