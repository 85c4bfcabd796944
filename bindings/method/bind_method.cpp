// `_core.Method`: one loaded method.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays/values.h"
#include "bindings.h"
#include "failure.h"
#include "program/session.h"

namespace rushlight::python {

namespace {

nb::object refused() { return nb::borrow(Py_NotImplemented); }

nb::object call(MethodHandle& self, nb::handle values) {
  if (!PyTuple_Check(values.ptr()) && !PyList_Check(values.ptr())) {
    throw nb::type_error("a tuple or list of inputs is expected");
  }
  nb::object result = self.runner->call(*self.session, values);
  return result.is_valid() ? result : refused();
}

void set_structure(MethodHandle& self, const std::string& structure) {
  self.runner->set_structure(structure == "single"  ? OutputStructure::Single
                             : structure == "tuple" ? OutputStructure::Tuple
                                                    : OutputStructure::List);
}

void set_kv_cache(MethodHandle& self, std::shared_ptr<OwnKvCache> cache) {
  self.runner->set_kv_cache(*self.session, std::move(cache));
}

nb::object report_refusal(MethodHandle& self, uint32_t code, const std::string& text) {
  return self.runner->report_refusal(*self.session, static_cast<Code>(code), text);
}

nb::tuple verify(MethodHandle& self, const std::string& name, size_t index, double rtol,
                 double atol) {
  const CaseReport report = self.runner->verify(*self.session, name, index, {rtol, atol});
  nb::list place;
  for (size_t i = 0; i < report.rank; ++i) place.append(report.index[i]);
  return nb::make_tuple(
      nb::make_tuple(report.passed, report.compared, report.message.text()),
      nb::make_tuple(report.absolute, report.relative),
      nb::make_tuple(report.n_elements, report.n_wrong, report.n_nan),
      nb::make_tuple(report.output, nb::tuple(place), report.got, report.expected));
}

// Fetches one fact of the method under the session's lock.
template <typename Read>
auto locked(MethodHandle& self, Read read) {
  Turn turn(*self.session);
  return read(self.runner->method());
}

}  // namespace

void init_method(nb::module_& m) {
  nb::class_<MethodHandle>(m, "Method")
      .def("call", call, nb::arg("values"))
      .def(
          "call_into",
          [](MethodHandle& self, nb::list values, nb::list outputs) {
            return self.runner->call_into(*self.session, values, outputs);
          },
          nb::arg("values"), nb::arg("outputs"))
      .def("set_structure", set_structure, nb::arg("structure"))
      .def(
          "narrow",
          [](MethodHandle& self, nb::list specs, size_t n_symbols) {
            Turn turn(*self.session);
            self.runner->expectation().narrow(specs, n_symbols);
          },
          nb::arg("specs"), nb::arg("n_symbols"))
      .def(
          "describe",
          [](MethodHandle& self, std::vector<std::string> inputs, std::vector<std::string> outputs,
             std::vector<std::string> specs) {
            Turn turn(*self.session);
            self.runner->describe(std::move(inputs), std::move(outputs), std::move(specs));
          },
          nb::arg("inputs"), nb::arg("outputs"), nb::arg("specs"))
      .def(
          "set_inputs",
          [](MethodHandle& self, nb::list values) {
            return self.runner->set_inputs(*self.session, values);
          },
          nb::arg("values"))
      .def("set_kv_cache", set_kv_cache, nb::arg("cache").none())
      .def("verify", verify, nb::arg("name"), nb::arg("index"), nb::arg("rtol"), nb::arg("atol"))
      .def("report_refusal", report_refusal, nb::arg("code"), nb::arg("text"))
      .def("execute", [](MethodHandle& self) { self.runner->execute(*self.session); })
      .def("step", [](MethodHandle& self) { return self.runner->step(*self.session); })
      .def("outputs", [](MethodHandle& self) { return self.runner->outputs(*self.session); })
      .def(
          "value",
          [](MethodHandle& self, size_t index) { return self.runner->value(*self.session, index); },
          nb::arg("index"))
      .def_prop_ro("n_values",
                   [](MethodHandle& self) {
                     return locked(self, [](const Method& m) { return m.n_values(); });
                   })
      .def_prop_ro("n_instructions",
                   [](MethodHandle& self) {
                     return locked(self, [](const Method& m) { return m.n_instructions(); });
                   })
      .def(
          "instruction_name",
          [](MethodHandle& self, uint32_t index) {
            return locked(self, [index](const Method& m) {
              if (index >= m.n_instructions()) throw nb::index_error("instruction out of range");
              return to_str(m.instruction_name(index));
            });
          },
          nb::arg("index"));
}

}  // namespace rushlight::python
