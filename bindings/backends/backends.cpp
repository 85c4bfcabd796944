#include "backends/backends.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "backends/python_backend.h"
#include "failure.h"
#include "rushlight/backends/demo/demo_backend.h"
#include "rushlight/module/backend_library.h"
#include "rushlight/module/module.h"

namespace rushlight::python {

namespace {

// Never destroyed: see backend_table().
struct Owned {
  std::vector<PythonBackend*> python;
  std::vector<BackendLibrary*> libraries;
  std::vector<PluginBackend*> capsules;
};

Owned& owned() {
  static auto* all = new Owned;
  return *all;
}

StringView view(const std::string& s) { return {s.data(), s.size()}; }

void check_added(Status status, const std::string& id) {
  if (status.ok()) return;
  fail(status.code(), status.code() == Code::OutOfResources
                          ? "the table of backends is full: it has room for " +
                                std::to_string(BackendTable::kCapacity)
                          : "there is a backend '" + id + "' already");
}

void register_object(const std::string& id, nb::object object) {
  auto backend = std::make_unique<PythonBackend>(id, std::move(object));
  check_added(backend_table().add(backend->id(), backend.get()), id);
  owned().python.push_back(backend.release());
}

// The id of the backend in a capsule, which is kept.
std::string register_capsule(nb::capsule capsule) {
  const char* name = capsule.name();
  if (name == nullptr || std::string(name) != RL_BACKEND_V1_CAPSULE) {
    fail(Code::InvalidArgument, std::string("a capsule named '") + RL_BACKEND_V1_CAPSULE +
                                    "' is expected, not '" + (name != nullptr ? name : "") + "'");
  }
  auto backend = std::make_unique<PluginBackend>();
  Message message;
  const Status status = backend->adopt(static_cast<const rl_backend_v1*>(capsule.data()), message);
  if (!status.ok()) fail(status.code(), message);
  std::string id = backend->id();
  check_added(backend_table().add(backend->id(), backend.get()), id);
  owned().capsules.push_back(backend.release());
  capsule.release();  // what it leads to must stay
  return id;
}

std::vector<std::string> register_library(nb::bytes path) {
  auto library = std::make_unique<BackendLibrary>();
  Message message;
  Status status = library->open(path.c_str(), message);
  if (status.ok()) status = library->add_to(backend_table(), message);
  if (!status.ok()) fail(status.code(), message);
  std::vector<std::string> ids;
  for (size_t i = 0; i < library->size(); ++i) ids.emplace_back(library->backend(i).id());
  owned().libraries.push_back(library.release());
  return ids;
}

bool unregister(const std::string& id) {
  Backend* registered = backend_table().find(view(id));
  if (registered == nullptr) return false;
  (void)backend_table().remove(view(id));
  for (PythonBackend* backend : owned().python) {
    if (backend == registered) backend->retire();
  }
  return true;
}

nb::list names() {
  nb::list all;
  const BackendTable& table = backend_table();
  for (size_t k = 0; k < table.size(); ++k) all.append(nb::str(table.id(k)));
  return all;
}

bool is_available(const std::string& id) {
  Backend* backend = backend_table().find(view(id));
  return backend != nullptr && backend->available();
}

}  // namespace

BackendTable& backend_table() {
  static BackendTable table;
  return table;
}

void init_backends(nb::module_& m) {
  init_backend_context(m);
  // Those that are always there.
  static DemoBackend demo;
  (void)register_default_backends(backend_table());
  (void)backend_table().add(DemoBackend::kId, &demo);
  m.def("backend_names", names);
  m.def("backend_is_available", is_available, nb::arg("id"));
  m.def("register_backend", register_object, nb::arg("id"), nb::arg("backend"));
  m.def("register_backend_capsule", register_capsule, nb::arg("capsule"));
  m.def("register_backend_library", register_library, nb::arg("path"));
  m.def("unregister_backend", unregister, nb::arg("id"));
}

}  // namespace rushlight::python
