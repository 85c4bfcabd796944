// std::string_view under its old name.
#pragma once

#include <executorch/runtime/platform/compiler.h>

#include <string_view>

namespace executorch::runtime::etensor {
using string_view ET_DEPRECATED = std::string_view;
}  // namespace executorch::runtime::etensor

namespace torch::executor {
using string_view ET_DEPRECATED = std::string_view;
}  // namespace torch::executor
