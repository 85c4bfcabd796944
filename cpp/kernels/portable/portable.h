// The portable kernels compute every operator of ops/ops.yaml, for all dtypes that it lists.
// "Portable" is ExecuTorch's name for this kernel set, which every build has; it does not mean
// scalar code. The loops in loops/ are compiled once for each instruction set and chosen at run
// time.
#pragma once

#include "rushlight/core/status.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight {

// Adds all kernels of ops/ops.yaml to `table`. Returns what KernelTable::add returns.
Status register_portable_kernels(KernelTable& table);

}  // namespace rushlight
