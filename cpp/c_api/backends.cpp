#include "rushlight/c_api/backends.h"

#include "rushlight/module/module.h"

namespace rushlight::c_api {

Status Backends::add(Span<const rl_backend_v1* const> tables, Span<const char* const> paths,
                     Message* message) {
  RL_TRY(register_default_backends(table));
  if (!tables.empty()) RL_TRY(check_given(tables.data(), "backends", message));
  for (const rl_backend_v1* one : tables) {
    RL_TRY(check_given(one, "a backend", message));
    auto backend = std::make_unique<PluginBackend>();
    RL_TRY(backend->adopt(one, *message));
    const Status added = table.add(backend->id(), backend.get());
    if (!added.ok()) {
      return message->fail(
          added.code(), "the backend %s cannot be added: %s", backend->id(),
          added.code() == Code::OutOfResources ? "the table is full" : "there is one of that id");
    }
    plugins.push_back(std::move(backend));
  }
  if (!paths.empty()) RL_TRY(check_given(paths.data(), "backend_libraries", message));
  for (const char* path : paths) {
    RL_TRY(check_given(path, "the path of a backend library", message));
    auto library = std::make_unique<BackendLibrary>();
    RL_TRY(library->open(path, *message));
    RL_TRY(library->add_to(table, *message));
    libraries.push_back(std::move(library));
  }
  return {};
}

}  // namespace rushlight::c_api
