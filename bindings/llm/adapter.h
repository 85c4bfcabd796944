// `_core.LlmAdapter`: an adapter of a language model that is loaded.
#pragma once

#include <memory>

#include "rushlight/llm/adapters/adapter.h"

namespace rushlight::python {

struct AdapterHandle {
  std::shared_ptr<const llm::Adapter> adapter;
};

// The adapter of an argument that may be None.
inline std::shared_ptr<const llm::Adapter> adapter_of(const AdapterHandle* handle) {
  return handle == nullptr ? nullptr : handle->adapter;
}

}  // namespace rushlight::python
