// The backend `XnnpackBackend`: runs payloads that ExecuTorch's exporter made for its XNNPACK
// delegate, on the engine. Weights are packed once, when a method is loaded.
#pragma once

#include "rushlight/backends/xnnpack/workspace.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/delegate/file_store.h"

namespace rushlight {

class XnnpackBackend final : public Backend {
 public:
  static constexpr const char* kId = "XnnpackBackend";

  // `files` stores packed weights if an option at load asks for that; nullptr if there are no
  // files.
  explicit XnnpackBackend(FileStore* files = nullptr) : files_(files) {}

  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override;
  void loaded(void* handle) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void* handle) override;  // everything lies in the method's memory

 private:
  FileStore* files_;
  xnnpack::Workspaces workspaces_;
};

}  // namespace rushlight
