// The portable kernels: every operator in plain C++, with loops that the compiler vectorises.
#pragma once

#include "rushlight/core/status.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight {

// Adds all kernels of ops/ops.yaml to `table`; the Status is KernelTable::add's.
Status register_portable_kernels(KernelTable& table);

}  // namespace rushlight
