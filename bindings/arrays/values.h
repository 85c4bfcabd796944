// Values of the runtime as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "rushlight/core/evalue.h"

namespace rushlight::python {

namespace nb = nanobind;

// A new Python object for `value`: tensors become NumPy arrays, or torch tensors if `as_torch`,
// that own a copy; scalars, strings, None and lists become what they are in Python. Throws a
// Failure for a tensor without memory or of a dtype that NumPy cannot hold.
nb::object to_python(const EValue& value, bool as_torch);

// A view of text in a program, which may hold anything, as a str.
nb::str to_str(StringView text);

}  // namespace rushlight::python
