#include "rushlight/module/module.h"

#if defined(RUSHLIGHT_HAS_PORTABLE_KERNELS)
#include "rushlight/kernels/portable/portable.h"
#endif

namespace rushlight {

const KernelTable* default_kernels() {
#if defined(RUSHLIGHT_HAS_PORTABLE_KERNELS)
  static KernelTable table;
  static const bool filled = register_portable_kernels(table).ok();
  return filled ? &table : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace rushlight
