// float16 under ExecuTorch's name.
#pragma once

#include <c10/util/Half.h>

namespace executorch::runtime::etensor {
using c10::Half;
namespace internal {
using c10::detail::fp16_ieee_from_fp32_value;
using c10::detail::fp16_ieee_to_fp32_bits;
using c10::detail::fp16_ieee_to_fp32_value;
using c10::detail::fp32_from_bits;
using c10::detail::fp32_to_bits;
}  // namespace internal
}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Half;
}  // namespace torch::executor
