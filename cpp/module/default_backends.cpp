#include "rushlight/module/module.h"

#if defined(RUSHLIGHT_HAS_BACKENDS)
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"
#include "rushlight/module/files/desktop_files.h"
#endif

namespace rushlight {

Status register_default_backends([[maybe_unused]] BackendTable& table) {
#if defined(RUSHLIGHT_HAS_BACKENDS)
  static CpuBackend cpu;
  static XnnpackBackend xnnpack(&desktop_files());
  RL_TRY(table.add(CpuBackend::kId, &cpu));
  return table.add(XnnpackBackend::kId, &xnnpack);
#else
  return {};
#endif
}

const BackendTable* default_backends() {
  static BackendTable table;
  static const bool filled = register_default_backends(table).ok();
  return filled && table.size() > 0 ? &table : nullptr;
}

}  // namespace rushlight
