// The operators and backends that programs opened from Python may use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "session.h"
#include "values.h"

namespace rushlight::python {

void init_registries(nb::module_& m) {
  m.def("operator_names", [] {
    nb::set names;
    if (const KernelTable* table = default_kernels()) {
      for (size_t k = 0; k < table->size(); ++k) names.add(nb::str((*table)[k].name));
    }
    return names;
  });
  m.def("backend_names", [] {
    nb::list names;
    const BackendTable& table = backend_table();
    for (size_t k = 0; k < table.size(); ++k) names.append(nb::str(table.id(k)));
    return names;
  });
  m.def(
      "backend_is_available",
      [](const std::string& id) {
        Backend* backend = backend_table().find({id.data(), id.size()});
        return backend != nullptr && backend->available();
      },
      nb::arg("id"));
}

}  // namespace rushlight::python
