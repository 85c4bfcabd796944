// rushlight_runner with a backend and kernels of separate libraries: what it prints about a result
// and about failures, including the lines of Python inside of the delegate.
//
// Usage: test_runner RUNNER BACKENDS KERNELS
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "bundle_builder.h"
#include "check.h"
#include "delegates.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// A temporary file in the current folder, removed at the end.
class Scratch {
 public:
  Scratch(const char* path, const void* data, size_t size) : path_(path) {
    std::FILE* file = std::fopen(path, "wb");
    CHECK(file != nullptr && std::fwrite(data, 1, size, file) == size);
    if (file != nullptr) std::fclose(file);
  }
  ~Scratch() { std::remove(path_); }

 private:
  const char* path_;
};

// y = scale(x). The delegate's places "mul" and 7 have lines of a model.
std::vector<uint8_t> scale_file(size_t payload_bytes) {
  const std::string debug =
      "{\"version\": 1, \"files\": [\"model.py\"], \"methods\": {},"
      " \"delegates\": {\"forward\": [{"
      "\"mul\": [[\"mul\", \"aten.mul.Tensor\", 0, 9, \"f\", \"x * 3\", \"\"]],"
      "\"7\": [[\"mul\", \"aten.mul.Tensor\", 0, 8, \"f\", \"self.factor\", \"\"]]}]}}";
  Plan plan;
  const int32_t x = plan.tensor({2});
  TensorOptions at;
  at.offset = 16;
  const int32_t y = plan.tensor({2}, at);
  plan.delegate("Scale", 0);
  plan.delegate_call(0, {x, y});
  plan.inputs = {x};
  plan.outputs = {y};
  ProgramFile file;
  file.plans = {plan};
  file.segments = {scale_payload(3), std::vector<uint8_t>(debug.begin(), debug.end())};
  file.segments[0].resize(payload_bytes);
  file.named = {{"rushlight/debug", 1}};
  return file.bytes();
}

// Runs the command and returns its output. Checks whether it reports success.
std::string run(const std::string& command, bool expected) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  CHECK(pipe != nullptr);
  std::string printed;
  if (pipe == nullptr) return printed;
  char part[256];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) printed += part;
  CHECK((pclose(pipe) == 0) == expected);
  return printed;
}

void check_prints(const std::string& printed, const char* wanted) {
  const bool is_printed = printed.find(wanted) != std::string::npos;
  if (!is_printed) std::fprintf(stderr, "printed: %s\n wanted: %s\n", printed.c_str(), wanted);
  CHECK(is_printed);
}

// The bytes of a file, which is removed; empty if there is none.
std::string taken(const char* path) {
  std::string content;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return content;
  char part[256];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof(part), file)) > 0;) content.append(part, n);
  std::fclose(file);
  std::remove(path);
  return content;
}

void test_trace(const std::string& runner, const std::string& with) {
  const std::string trace = runner + " test_runner_scale.pte --etdump test_runner.etdp";
  const char* path = "test_runner.etdp";
  const char* values = "test_runner.etdp.values";
  (void)run(trace + " --repeat 2" + with, true);
  const std::string events = taken(path);
  CHECK(events.size() > 12 && events.substr(8, 4) == "ED00");
  CHECK(taken(values).empty());
  // The output of two runs; with all values the call's arguments and both places of the delegate,
  // too; by a name that is not there.
  const size_t kept[] = {64 + 8, 9 * 64 + 8, 64 + 8, 9 * 64 + 8};
  const char* levels[] = {"outputs", "all", "aten::none,1", "Scale"};
  for (size_t i = 0; i < 4; ++i) {
    (void)run(trace + " --repeat 2 --etdump-values " + levels[i] + with, true);
    CHECK(taken(path).size() > 0);
    CHECK(taken(values).size() == kept[i]);
  }
  check_prints(run(trace + " --etdump-bytes 64" + with, true), " events and 0 values");
  check_prints(run(trace + "/no/x.etdp" + with, false), "/no/x.etdp cannot be written: ");
  // The trace of a run that fails is kept.
  (void)run(trace + " --input test_runner_input.bin" + with, false);
  CHECK(taken(path).size() > 0);
  check_prints(run(runner + " test_runner_scale.pte --etdump-values all", false), "usage: ");
}

// A failed run, and a load that fails, leave a report; a good run leaves none.
void test_failure_report(const std::string& runner, const std::string& with) {
  const char* path = "test_runner_report.bin";
  const std::string reporting = runner + " test_runner_scale.pte --failure-report " + path;
  (void)run(reporting + with, true);
  CHECK(taken(path).empty());
  check_prints(run(reporting + with + " --input test_runner_input.bin", false),
               "  rushlight explain test_runner_report.bin test_runner_scale.pte tells more\n");
  std::string report = taken(path);
  CHECK(report.size() == sizeof(FailureReport) && report.substr(0, 4) == "RLFR");
  CHECK(report.find("Scale") != std::string::npos);
  (void)run(reporting, false);  // without the library, there is no such backend
  report = taken(path);
  CHECK(report.size() == sizeof(FailureReport));
  CHECK(report.find("no backend Scale") != std::string::npos);
  check_prints(run(runner + " test_runner_scale.pte --failure-report /no/r.bin" + with, false),
               "/no/r.bin cannot be written: ");
}

// The test cases of a bundled program; without --verify it runs like the program in it.
void test_verify(const std::string& runner, const std::string& with) {
  const std::vector<Table> x = {floats({2}, {1, 2}).value()};
  const BundledTest right = {x, {floats({2}, {3, 6}).value()}, "right"};
  const BundledTest wrong = {x, {floats({2}, {3, 7}).value()}};
  const std::vector<uint8_t> passing = BundleFile{scale_file(8), {{"forward", {right}}}}.bytes();
  const std::vector<uint8_t> failing =
      BundleFile{scale_file(8), {{"forward", {right, wrong}}}}.bytes();
  const Scratch good("test_runner_good.bpte", passing.data(), passing.size());
  const Scratch bad("test_runner_bad.bpte", failing.data(), failing.size());
  check_prints(run(runner + " test_runner_good.bpte --print" + with, true), "3 3");
  std::string printed = run(runner + " test_runner_good.bpte --verify" + with, true);
  check_prints(printed, "forward 0 right: passed; greatest error 0, relative 0; 0 NaN\n");
  check_prints(printed, "1 of 1 test cases passed\n");
  const std::string verify = runner + " test_runner_bad.bpte --verify --no-map" + with;
  printed = run(verify + " --etdump test_runner.etdp --etdump-values outputs", false);
  check_prints(printed,
               "forward 1: failed; greatest error 1, relative 0.142857; 0 NaN; output 0 at "
               "[1] is 6, expected is 7; 1 of 2 elements depart\n");
  check_prints(printed, "1 of 2 test cases passed\n");
  CHECK(taken("test_runner.etdp").size() > 0);
  CHECK(taken("test_runner.etdp.values").size() == 64 + 8);
  (void)run(verify + " --atol 1", true);
  (void)run(verify + " --rtol 0.2 --method forward", true);
  check_prints(run(verify + " --method other", false), "has no test cases of this method");
  check_prints(run(verify + " --atol -1", false), "usage: ");
  check_prints(run(runner + " test_runner_scale.pte --verify" + with, false),
               "the program has no test cases: it is no bundled program (.bpte)");
}

// y = acme::twice(x), of a library of kernels.
void test_kernels(const std::string& runner, const std::string& library) {
  Plan plan;
  const int32_t x = plan.tensor({1, 2});
  TensorOptions at;
  at.offset = 16;
  const int32_t y = plan.tensor({1, 2}, at);
  plan.call("acme::twice", {x, y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  const std::vector<uint8_t> file = file_of(plan);
  const float numbers[] = {1.5, -2};
  const Scratch program("test_runner_twice.pte", file.data(), file.size());
  const Scratch input("test_runner_numbers.bin", numbers, sizeof(numbers));
  const std::string command =
      runner + " test_runner_twice.pte --print --input test_runner_numbers.bin";
  const std::string with = " --kernels " + library;
  check_prints(run(command + with, true), "3 -4");
  check_prints(run(command, false), "no kernel for acme::twice.out (instruction 0)");
  check_prints(run(command + with + with, true), "3 -4");  // the same one
  std::ifstream bytes(library, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(bytes)), {});
  const Scratch copy("test_runner_copy.so", content.data(), content.size());
  check_prints(run(command + with + " --kernels ./test_runner_copy.so", false),
               "the kernel acme::twice.out cannot be added: there is one of that name");
  check_prints(run(command + " --kernels no/such.so", false), "no/such.so: the library cannot be");
}

void test_runner(const std::string& runner, const std::string& library) {
  const std::vector<uint8_t> whole = scale_file(8), cut = scale_file(7);
  const float negative[] = {1, -2};
  const Scratch program("test_runner_scale.pte", whole.data(), whole.size());
  const Scratch damaged("test_runner_cut.pte", cut.data(), cut.size());
  const Scratch input("test_runner_input.bin", negative, sizeof(negative));
  const std::string with = " --backend " + library;
  check_prints(run(runner + " test_runner_scale.pte --print" + with, true), "3 3");
  for (const char* option : {" --guard", " --no-map", " --guard --no-map"}) {
    check_prints(run(runner + " test_runner_scale.pte --print" + option + with, true), "3 3");
  }
  test_trace(runner, with);
  test_failure_report(runner, with);
  test_verify(runner, with);
  check_prints(run(runner + " .", false), ".: it is a directory, not a file");
  const std::string failed =
      run(runner + " test_runner_scale.pte --input test_runner_input.bin" + with, false);
  check_prints(failed, "forward: instruction 0 (Scale): at mul: an element is negative");
  check_prints(failed, "  from model.py:9 in f: `x * 3`");
  const std::string refused = run(runner + " test_runner_cut.pte" + with, false);
  check_prints(refused, "forward: delegate 0 (Scale): at 7: the payload is not 'SCL1'");
  check_prints(refused, "  from model.py:8 in f: `self.factor`");
  const std::string missing = run(runner + " test_runner_scale.pte", false);
  check_prints(missing, "forward: no backend Scale; add it to the table of backends");
  check_prints(missing, "--backend FILE.so");
  check_prints(run(runner + " test_runner_scale.pte" + with + with, false),
               "the backend Scale cannot be added: there is one of that id");
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  if (argc != 4) return check_result();
  test_runner(argv[1], argv[2]);
  test_kernels(argv[1], argv[3]);
  return check_result();
}
