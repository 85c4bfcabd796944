// What the binding throws: the code and text of a C++ Status with where it happened. It reaches
// Python as `_core.Failure`, which the Python face turns into LoadError or RunError after adding
// the Python line of the instruction.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::python {

namespace nb = nanobind;

// Something that a program needs and this runtime does not have.
struct Missing {
  std::string method;
  int64_t instruction;  // index in its chain; -1 for a backend
  std::string name;     // of the operator or the backend
  bool is_there;        // the operator exists, but not for these dtypes; the backend cannot work
  int64_t delegate;     // of a backend: index among the method's delegates; else -1
};

struct Failure {
  Code code = Code::Internal;
  std::string message;
  std::string method;
  int64_t instruction = -1;  // index in its chain; -1: not in an instruction
  std::string name;          // of the instruction's operator or backend
  std::vector<Missing> missing;
  int64_t delegate = -1;    // index among the method's delegates, if one failed
  std::string place;        // where inside of it, by its backend's own ids
  std::string report_path;  // of the session, if it reports failures
  std::string report;       // the FailureReport's bytes; empty: there is none
  nb::object cause;         // the exception of a backend in Python
};

// For what a backend in Python raises, on its way past the runtime's codes: kept for this thread
// until it is taken. Both need the GIL.
void keep_cause(nb::object exception);
nb::object take_cause();

// The path and the bytes of a failure's report; None if there is none.
nb::object report_to_python(const Failure& failure);

// Throws what `message` says, or the name of the code if it says nothing.
[[noreturn]] void fail(Code code, const Message& message);
[[noreturn]] void fail(Code code, std::string message);

// Defines `_core.Failure`; src/rushlight/_core.pyi has its arguments.
void init_failure(nb::module_& m);

}  // namespace rushlight::python
