// How many dimensions a tensor may have.
#pragma once

#include <cstddef>

#include "rushlight/core/tensor.h"

namespace executorch::runtime {
constexpr size_t kTensorDimensionLimit = ::rushlight::kMaxRank;
}  // namespace executorch::runtime
