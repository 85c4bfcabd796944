// Kernels of your own for programs opened from Python: the one table, and kernels in Python.
//
// The runtime calls kernels without the GIL, so each call of one in Python takes it. Its arguments
// are lent for the call (arrays/lent.h), its results are copied. What it raises is caught here: its
// text becomes the message of the failure, and the exception itself is kept for the Python face.
#pragma once

#include <nanobind/nanobind.h>

#include "rushlight/kernel/kernel.h"

namespace rushlight::python {

namespace nb = nanobind;

// The kernels of the runtime, those that were registered, and those of libraries that export
// rl_get_loaded_kernel_v1 and were loaded by whatever means, which are looked for now. Lives as
// long as the process, as all that is ever in it does: methods may use a kernel after it was taken
// out. Changed and asked with the GIL held.
KernelTable& kernel_table();

// Defines the functions that change and ask it.
void init_kernel_table(nb::module_& m);

}  // namespace rushlight::python
