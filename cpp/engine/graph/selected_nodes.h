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

// Ok if this build has all that these nodes need; else the message names all that it lacks.
Status check_selected(Span<const Node> nodes, Message& message);

// The operator of a node that check_selected() allows.
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

}  // namespace rushlight::engine
