// bfloat16 under ExecuTorch's name.
#pragma once

#include <c10/util/BFloat16.h>

namespace executorch::runtime::etensor {
using c10::BFloat16;
namespace internal {
using c10::detail::f32_from_bits;
using c10::detail::round_to_nearest_even;
}  // namespace internal
}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::BFloat16;
}  // namespace torch::executor
