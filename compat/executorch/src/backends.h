// Backends of an application as backends of the runtime.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/interface.h>

#include "rushlight/delegate/backend.h"
#include "rushlight/delegate/options.h"

namespace executorch::runtime::internal {

class AdoptedBackend final : public ::rushlight::Backend {
 public:
  void adopt(BackendInterface* backend) { backend_ = backend; }
  BackendInterface* interface() const { return backend_; }

  bool available() const override { return backend_->is_available(); }
  ::rushlight::Result<void*> init(::rushlight::BackendInit& init) override;
  ::rushlight::Status execute(const ::rushlight::BackendRun& run, void* handle,
                              ::rushlight::EValue* const* args, size_t n_args) override;
  void destroy(void* handle) override;

 private:
  BackendInterface* backend_ = nullptr;
};

// Those that are registered, and the runtime's own whose names are not.
const ::rushlight::BackendTable& registered_backends();

// The options of a load as the runtime's: nothing is copied but numbers. `options` has room for
// count_options() of them.
size_t count_options(const LoadBackendOptionsMap& map);
Error translate_options(const LoadBackendOptionsMap& map, ::rushlight::BackendOption* options,
                        ::rushlight::BackendOptionsMap& to);

}  // namespace executorch::runtime::internal
