// The cpu backend, `CpuBackend`: the engine for whole models on a processor. Its compiler half
// (src/rushlight/backends/cpu) fuses a part of a graph into few operators and packs its weights;
// the payload (schema/cpu_engine.fbs) and the weights are used as they lie in the file.
#pragma once

#include "rushlight/delegate/backend.h"

namespace rushlight {

class CpuBackend final : public Backend {
 public:
  static constexpr const char* kId = "CpuBackend";

  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override;
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n_args) override;
  void destroy(void*) override {}  // everything lies in the method's memory
};

}  // namespace rushlight
