// A bundled program (.bpte): a program file, and test cases for its methods with the outputs that
// are expected of them.
//
// The file is verified once, then read in place: it must live as long as these objects. method/
// bundled_test.h runs a case.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/host_tensor.h"
#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/program/bundled_program_fb.h"

namespace rushlight {

// An input or an expected output: Tensor, Int, Bool, Double, or None, which stands for what a
// program always has in this place: None, or a text.
struct BundledValue {
  Tag tag = Tag::None;
  int64_t i = 0;  // Int, and Bool as 0 or 1
  double d = 0;
  HostTensor tensor;
};

// How far an output may depart from what is expected: |got - expected| <= atol + rtol * |expected|;
// for whole numbers by atol alone.
struct Tolerance {
  double rtol = 1e-5;
  double atol = 1e-8;
};

// A test case: one call of a method.
class BundledCase {
 public:
  BundledCase() = default;
  explicit BundledCase(fb::bundled::BundledMethodTestCase root) : root_(root) {}

  // Both may be empty; the origin is what the expected outputs come from.
  StringView name() const { return root_.notes().name(); }
  StringView origin() const { return root_.notes().origin(); }
  size_t n_inputs() const { return root_.inputs().size(); }
  size_t n_expected() const { return root_.expected_outputs().size(); }
  // Return InvalidProgram for a tensor whose parts contradict each other. Indices must be in range.
  Status input(size_t i, BundledValue* value, Message& message) const;
  Status expected(size_t i, BundledValue* value, Message& message) const;
  // What the file allows for an output; ExecuTorch's default if it says nothing.
  Tolerance tolerance(size_t output) const;

 private:
  fb::bundled::BundledMethodTestCase root_;
};

class Bundle {
 public:
  // True if the bytes begin like a bundled program.
  static bool is_bundle(Span<const uint8_t> file);
  // Verifies a file, but not the program in it. Returns InvalidProgram.
  Status load(Span<const uint8_t> file, Message& message);
  bool loaded() const { return root_.present(); }

  // The program file inside, in place.
  Span<const uint8_t> program() const { return fb::as_span(root_.program()); }
  // The suites of test cases, each of one method. Indices must be in range.
  size_t n_suites() const { return root_.method_test_suites().size(); }
  StringView method(size_t suite) const { return root_.method_test_suites()[suite].method_name(); }
  size_t n_cases(size_t suite) const {
    return root_.method_test_suites()[suite].test_cases().size();
  }
  // The index, among the cases of its method, of a suite's first case: a method may have several
  // suites.
  size_t first_case(size_t suite) const;
  // A case of a method. Returns InvalidArgument if there is no such case.
  Result<BundledCase> find(StringView method, size_t index, Message& message) const;

 private:
  fb::bundled::BundledProgram root_;
};

}  // namespace rushlight
