// Models of images and sound have no runner here.
#pragma once

#include <executorch/extension/llm/runner/llm_runner_helper.h>

namespace executorch::extension::llm {

// Stands for the type in declarations. Whoever makes or uses one is told what there is instead.
class MultimodalRunner final {
 public:
  template <typename... Arguments>
  explicit MultimodalRunner(const Arguments&...) {
    static_assert(sizeof...(Arguments) == SIZE_MAX,
                  "models of images and sound have no runner here: use create_text_llm_runner() "
                  "for text, and a Module for the encoder of a model of your own");
  }
};

}  // namespace executorch::extension::llm
