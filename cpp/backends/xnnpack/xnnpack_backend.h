// The backend `XnnpackBackend`: runs what ExecuTorch's exporter made for its XNNPACK delegate on
// the engine of the cpu backend. Weights are packed once, when a method is loaded.
#pragma once

#include "rushlight/backends/xnnpack/workspace.h"
#include "rushlight/delegate/backend.h"

namespace rushlight {

class XnnpackBackend final : public Backend {
 public:
  static constexpr const char* kId = "XnnpackBackend";

  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void* handle) override;  // all that it has lies in the method's memory

 private:
  xnnpack::Workspaces workspaces_;
};

}  // namespace rushlight
