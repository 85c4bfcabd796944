// The backends that programs opened from Python may use: the one table, and who owns what is in it.
#pragma once

#include <nanobind/nanobind.h>

#include "rushlight/delegate/backend.h"

namespace rushlight::python {

namespace nb = nanobind;

// Lives as long as the process, as all that is ever in it does: methods may use a backend after it
// was taken out. Changed and asked with the GIL held.
BackendTable& backend_table();

// Defines the functions that change and ask it.
void init_backends(nb::module_& m);

}  // namespace rushlight::python
