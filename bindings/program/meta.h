// What a program says of its methods, as plain Python dicts and lists.
#pragma once

#include <nanobind/nanobind.h>

#include "rushlight/module/module.h"

namespace rushlight::python {

namespace nb = nanobind;

// {"name", "inputs", "outputs", "arenas", "operators", "backends", "instructions", "values",
// "containers"}; the fields stand at `Program.meta` in src/rushlight/_core.pyi.
nb::dict method_meta(const Module& module, StringView name);

// {"arenas", "shared_arenas", "structures", "outputs", "scratch"}, in bytes.
nb::dict memory_use(Module& module, StringView name);

// {"file", "constants"}, in bytes.
nb::dict program_sizes(const Program& program);

}  // namespace rushlight::python
