// Which kinds of nodes this build has operators for: all, or those of a selective build
// (kernel/selection.h).
#pragma once

#include <variant>

#include "rushlight/engine/operators/operator.h"
#include "rushlight/kernel/selection.h"

namespace rushlight::engine {

#if defined(RL_SELECTED_NODES)

constexpr bool kHasAllNodes = false;
template <typename P>
constexpr bool kHasNode = false;
#define RL_HAS_NODE(kind) \
  template <>             \
  inline constexpr bool kHasNode<kind##Parameters> = true;
RL_SELECTED_NODES(RL_HAS_NODE)
#undef RL_HAS_NODE

#else

constexpr bool kHasAllNodes = true;
template <typename P>
constexpr bool kHasNode = true;

#endif

// False if this build was made without the operator of a node.
inline bool has_operator(const Parameters& parameters) {
  return std::visit([](const auto& p) { return kHasNode<std::decay_t<decltype(p)>>; }, parameters);
}

// The operator of a node; has_operator() must be true.
inline Result<Operator*> make_selected(const Parameters& parameters, Setup& setup) {
  return std::visit(
      [&](const auto& p) -> Result<Operator*> {
        if constexpr (kHasNode<std::decay_t<decltype(p)>>) {
          return make_operator(p, setup);
        } else {
          return Code::NotSupported;
        }
      },
      parameters);
}

// The name of a node's kind, as in schema/cpu_engine.fbs where payloads have it.
inline const char* kind_name(const Parameters& parameters) {
  // clang-format off
  constexpr const char* kNames[] = {
      "Product", "BatchProduct", "Convolution", "Pooling", "ArgMax", "Resize", "Elementwise",
      "Norm", "GroupNorm", "Softmax", "Reduction", "Gather", "Copy", "Attention", "QuantizedBinary",
      "Lookup", "QuantizedPooling", "Convert", "QuantizeRows", "QuantizedProduct",
      "DynamicProduct", "QuantizedConvolution", "Recurrent", "CachedAttention", "Adapter",
      "KernelCall"};
  // clang-format on
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == std::variant_size_v<Parameters>,
                "a name for each kind of node");
  return kNames[parameters.index()];
}

}  // namespace rushlight::engine
