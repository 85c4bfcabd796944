// `_core.Program`: an opened program, its methods and its named data.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays/values.h"
#include "bindings.h"
#include "failure.h"
#include "program/meta.h"
#include "program/session.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/program/identity.h"

namespace rushlight::python {

namespace {

StringView view(const std::string& s) { return {s.data(), s.size()}; }

nb::list method_names(ProgramHandle& self) {
  Turn turn(*self.session);
  const Program& program = self.session->module().program();
  nb::list names;
  for (size_t k = 0; k < program.n_methods(); ++k) names.append(to_str(program.method_name(k)));
  return names;
}

nb::object named_data(ProgramHandle& self, const std::string& key) {
  Turn turn(*self.session);
  const Result<Span<const uint8_t>> data = self.session->module().program().get(view(key));
  if (!data.ok()) return nb::none();
  return nb::bytes(data.value().data(), data.value().size());
}

nb::list named_data_keys(ProgramHandle& self) {
  Turn turn(*self.session);
  const Program& program = self.session->module().program();
  nb::list keys;
  for (size_t k = 0; k < program.n_keys(); ++k) keys.append(to_str(program.key(k)));
  return keys;
}

void manual_seed(ProgramHandle& self, uint64_t seed) {
  Turn turn(*self.session);
  self.session->module().manual_seed(seed);
}

uint64_t memory_in_use(ProgramHandle& self) {
  Turn turn(*self.session);
  return self.session->module().memory_in_use();
}

SessionTrace& trace_of(ProgramHandle& self) {
  SessionTrace* trace = self.session->trace();
  if (trace == nullptr) {
    fail(Code::InvalidState, "nothing is traced: load the program with trace=True");
  }
  return *trace;
}

nb::tuple trace_events(ProgramHandle& self) {
  Turn turn(*self.session);
  const SessionTrace& trace = trace_of(self);
  const std::string method(trace.method().data(), trace.method().size());
  return nb::make_tuple(to_str(trace.method()), trace.events(self.session->loaded_method(method)));
}

nb::tuple trace_dump(ProgramHandle& self) {
  Turn turn(*self.session);
  return trace_of(self).content();
}

nb::tuple trace_dropped(ProgramHandle& self) {
  Turn turn(*self.session);
  return trace_of(self).dropped();
}

void trace_clear(ProgramHandle& self) {
  Turn turn(*self.session);
  trace_of(self).clear();
}

nb::dict sizes(ProgramHandle& self) {
  Turn turn(*self.session);
  return program_sizes(self.session->module().program());
}

ProgramHandle open(nb::object path, nb::object data, nb::object external_path,
                   nb::object external_data, uint64_t memory_limit, nb::tuple trace, size_t threads,
                   nb::object check_backends, bool map, bool guard, const nb::bytes& failure_report,
                   const nb::list& kernels) {
  (void)kernels::current_isa();  // so that the log of a load has what is wrong with RUSHLIGHT_CPU
  SessionOptions options;
  options.memory_limit = memory_limit;
  options.trace = trace_options(trace);
  options.threads = threads;
  options.map = map;
  options.guard = guard;
  options.failure_report.assign(failure_report.c_str(), failure_report.size());
  for (nb::handle path : kernels) {
    options.kernels.emplace_back(nb::cast<nb::bytes>(path).c_str());
  }
  if (!check_backends.is_none()) options.check_backends = nb::cast<bool>(check_backends);
  return {Session::open({std::move(path), std::move(data)},
                        {std::move(external_path), std::move(external_data)}, options)};
}

void set_backend_options(ProgramHandle& self, nb::list options) {
  Turn turn(*self.session);
  self.session->set_backend_options(OptionStore::of(options));
}

}  // namespace

void init_program(nb::module_& m) {
  nb::class_<ProgramHandle> program(m, "Program");
  program
      .def_static("open", open, nb::arg("path").none(), nb::arg("data").none(),
                  nb::arg("external_path").none(), nb::arg("external_data").none(),
                  nb::arg("memory_limit"), nb::arg("trace"), nb::arg("threads"),
                  nb::arg("check_backends").none(), nb::arg("map"), nb::arg("guard"),
                  nb::arg("failure_report"), nb::arg("kernels"))
      .def("set_backend_options", set_backend_options, nb::arg("options"))
      .def("clone", [](ProgramHandle& self) { return ProgramHandle{self.session->clone()}; })
      .def("manual_seed", manual_seed, nb::arg("seed"))
      .def("close", [](ProgramHandle& self) { self.session->close(); })
      .def("method_names", method_names)
      .def("named_data", named_data, nb::arg("key"))
      .def("named_data_keys", named_data_keys)
      .def("trace_events", trace_events)
      .def("trace_dump", trace_dump)
      .def("trace_dropped", trace_dropped)
      .def("trace_clear", trace_clear)
      .def(
          "meta",
          [](ProgramHandle& self, const std::string& name) {
            Turn turn(*self.session);
            return method_meta(self.session->module(), view(name));
          },
          nb::arg("name"))
      .def(
          "memory_use",
          [](ProgramHandle& self, const std::string& name) {
            Turn turn(*self.session);
            return memory_use(self.session->module(), view(name));
          },
          nb::arg("name"))
      .def("memory_in_use", memory_in_use)
      .def("memory_resident",
           [](ProgramHandle& self) {
             Turn turn(*self.session);
             return self.session->module().memory_resident();
           })
      .def("threads",
           [](ProgramHandle& self) {
             Turn turn(*self.session);
             return self.session->module().threads();
           })
      .def("sizes", sizes)
      .def("identity",
           [](ProgramHandle& self) {
             Turn turn(*self.session);
             return identity_of(self.session->module().program());
           })
      .def(
          "method",
          [](ProgramHandle& self, const std::string& name) {
            return MethodHandle{self.session, &self.session->runner(name)};
          },
          nb::arg("name"));
  init_state(program);
}

}  // namespace rushlight::python
