// The backends that a program is opened with: the library's own, and those of the caller.
#pragma once

#include <memory>
#include <vector>

#include "rushlight/c_api/entry.h"
#include "rushlight/module/backend_library.h"

namespace rushlight::c_api {

struct Backends {
  // Those that `options` names, rl_module_options or rl_llm_options.
  template <class Options>
  Status add(const Options& options, Message* message) {
    return add({options.backends, options.n_backends},
               {options.backend_libraries, options.n_backend_libraries}, message);
  }
  Status add(Span<const rl_backend_v1* const> tables, Span<const char* const> paths,
             Message* message);

  std::vector<std::unique_ptr<PluginBackend>> plugins;
  std::vector<std::unique_ptr<BackendLibrary>> libraries;
  BackendTable table;
};

}  // namespace rushlight::c_api
