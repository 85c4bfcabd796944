// The inputs of a call: Python objects read as memory and numbers, and what a method expects of
// them. Checking a whole call here, before anything is set, is what makes the common call fast; the
// Python face explains in words what this refuses.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "arrays/arrays.h"
#include "rushlight/method/method.h"

namespace rushlight::python {

// The values that a size, or an integer input, may have.
struct Range {
  int64_t min;
  int64_t max;
  int32_t symbol;  // equal symbols have equal values in one call; -1: none
};

struct Expected {
  Tag tag = Tag::None;
  DType dtype = DType::Float32;  // Tensor
  uint8_t dim_order[kMaxRank] = {};
  bool planned = false;
  std::vector<Range> dims;  // Tensor: one per dimension
  bool fixed = true;        // a scalar that must be the one that the model was traced with
  Range range{INT64_MIN, INT64_MAX, -1};  // Int that is not fixed
  int64_t i = 0;
  double d = 0.0;
  std::string text;
};

struct Argument {
  ArrayRef array;  // Tensor
  int64_t i = 0;   // Int, Bool
  double d = 0.0;  // Double
};

class Expectation {
 public:
  // What the program itself says of a method's inputs.
  explicit Expectation(const MethodMeta& meta);
  Expectation() = default;

  size_t size() const { return inputs_.size(); }
  // Narrows what the program says by what its contract says. `specs` has one entry per input: a
  // list of (min, max, symbol) for a tensor; (min, max, symbol) for an integer that may vary; True
  // for another scalar that may vary; None for what stays as it is. Throws nb::value_error if the
  // specs do not fit the inputs.
  void narrow(nb::list specs, size_t n_symbols);

  // Reads `values` (a tuple or list) into `arguments`; false if one does not fit.
  bool read(nb::handle values, std::vector<Argument>& arguments) const;
  // Gives the method what read() found; a failure is in the method's message.
  Status set(Method& method, std::vector<Argument>& arguments) const;
  // True if an input is read where it lies, so that a run needs the arguments alive.
  bool borrows() const;

 private:
  bool read_one(PyObject* value, const Expected& expected, Argument& argument,
                std::vector<int64_t>& symbols) const;

  std::vector<Expected> inputs_;
  size_t n_symbols_ = 0;
};

}  // namespace rushlight::python
