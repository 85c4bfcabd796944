// std::optional under its old names.
#pragma once

#include <executorch/runtime/platform/compiler.h>

#include <optional>

namespace executorch::runtime::etensor {
template <typename T>
using optional ET_DEPRECATED = std::optional<T>;
using nullopt_t ET_DEPRECATED = std::nullopt_t;
ET_DEPRECATED inline constexpr std::nullopt_t nullopt{std::nullopt};
}  // namespace executorch::runtime::etensor

namespace torch::executor {
template <typename T>
using optional ET_DEPRECATED = std::optional<T>;
using nullopt_t ET_DEPRECATED = std::nullopt_t;
ET_DEPRECATED inline constexpr std::nullopt_t nullopt{std::nullopt};
}  // namespace torch::executor
