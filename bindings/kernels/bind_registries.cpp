// The operators that programs opened from Python may use.
#include <nanobind/nanobind.h>

#include "bindings.h"
#include "rushlight/module/module.h"

namespace rushlight::python {

void init_registries(nb::module_& m) {
  m.def("operator_names", [] {
    nb::set names;
    if (const KernelTable* table = default_kernels()) {
      for (size_t k = 0; k < table->size(); ++k) names.add(nb::str((*table)[k].name));
    }
    return names;
  });
}

}  // namespace rushlight::python
