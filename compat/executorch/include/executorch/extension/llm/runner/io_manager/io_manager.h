// What the method of a language model takes besides tokens and their position: nothing, here. A
// class that derives from this one gives models with more inputs theirs.
#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/compiler.h>

#include <string>
#include <vector>

namespace executorch::extension::llm {

class IOManager {
 public:
  explicit IOManager(Module& module) : module_(module) {}
  virtual ~IOManager() = default;

  ET_NODISCARD virtual runtime::Error load(const std::string&, const std::string&) {
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error load() { return load("forward", "forward"); }
  ET_NODISCARD virtual runtime::Error reset(const std::string&, const std::string&) {
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error reset() { return reset("forward", "forward"); }
  // The inputs of a step that reads a prompt, and of one that generates. InvalidState for a method
  // that takes more.
  virtual runtime::Result<std::vector<runtime::EValue>> prepare_prefill(
      const TensorPtr& input, const TensorPtr& start_pos, const std::string& prefill_method) {
    return inputs(input, start_pos, prefill_method);
  }
  runtime::Result<std::vector<runtime::EValue>> prepare_prefill(const TensorPtr& input,
                                                                const TensorPtr& start_pos) {
    return prepare_prefill(input, start_pos, "forward");
  }
  virtual runtime::Result<std::vector<runtime::EValue>> prepare_decode(
      const TensorPtr& input, const TensorPtr& start_pos, const std::string& decode_method) {
    return inputs(input, start_pos, decode_method);
  }
  runtime::Result<std::vector<runtime::EValue>> prepare_decode(const TensorPtr& input,
                                                               const TensorPtr& start_pos) {
    return prepare_decode(input, start_pos, "forward");
  }
  ET_NODISCARD virtual runtime::Error update_prefill(const std::vector<runtime::EValue>&,
                                                     const std::string&) {
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error update_prefill(const std::vector<runtime::EValue>& outputs) {
    return update_prefill(outputs, "forward");
  }
  ET_NODISCARD virtual runtime::Error update_decode(const std::vector<runtime::EValue>&,
                                                    const std::string&) {
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error update_decode(const std::vector<runtime::EValue>& outputs) {
    return update_decode(outputs, "forward");
  }

 private:
  runtime::Result<std::vector<runtime::EValue>> inputs(const TensorPtr& input,
                                                       const TensorPtr& start_pos,
                                                       const std::string& method) {
    ET_ASSIGN_OR_RETURN(meta, module_.method_meta(method));
    ET_CHECK_OR_RETURN_ERROR(meta.num_inputs() == 2, InvalidState,
                             "%s takes %zu inputs, not tokens and a position alone: derive from "
                             "IOManager to give it the others",
                             method.c_str(), meta.num_inputs());
    return std::vector<runtime::EValue>{input, start_pos};
  }

  Module& module_;
};

}  // namespace executorch::extension::llm
