// The declaration that the guide's two files share.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <optional>

executorch::aten::Tensor& custom_linear_out(const executorch::aten::Tensor& weight,
                                            const executorch::aten::Tensor& input,
                                            std::optional<executorch::aten::Tensor> bias,
                                            executorch::aten::Tensor& out);
