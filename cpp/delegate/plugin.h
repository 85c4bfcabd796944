// A backend of a library that was built apart (rl_backend_v1.h), as a Backend: every struct and
// pointer that comes from there is checked, and its errors keep their text.
#pragma once

#include "rushlight/abi/rl_backend_v1.h"
#include "rushlight/delegate/backend.h"

namespace rushlight {

class PluginBackend final : public Backend {
 public:
  // `backend` and what it points to must outlive this object. DelegateInvalidCompatibility for
  // another version, or a struct that is too small or lacks a function; the message says what.
  Status adopt(const rl_backend_v1* backend, Message& message);
  const char* id() const { return backend_.id; }

  bool available() const override;
  Result<void*> init(BackendInit& init) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void* handle) override;

 private:
  rl_backend_v1 backend_ = {};
};

}  // namespace rushlight
