// Runs one step of a language model: the method `forward` of a program of the form that
// ExecuTorch's runner takes.
#pragma once

#include <executorch/extension/llm/runner/io_manager/io_manager.h>
#include <executorch/extension/llm/sampler/sampler.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

namespace executorch::extension::llm {

class TextDecoderRunner {
 public:
  // Both must outlive it.
  explicit TextDecoderRunner(Module* module, IOManager* io_manager)
      : module_(module), io_manager_(io_manager) {}
  virtual ~TextDecoderRunner() = default;

  // The logits after tokens of which the first stands at `start_pos`; valid until the next step.
  virtual runtime::Result<aten::Tensor> step(TensorPtr& input, int64_t start_pos);
  virtual runtime::Error load() { return module_->load_method("forward"); }
  virtual bool is_method_loaded() { return module_->is_method_loaded("forward"); }
  void stop() { should_stop_ = true; }
  // Draws from the logits of the last token. The program ends if they are not floating-point
  // numbers.
  int32_t logits_to_token(const aten::Tensor& logits_tensor, float temperature = 0.0f);

 protected:
  Module* module_;
  IOManager* io_manager_;
  bool should_stop_ = false;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::TextDecoderRunner;
}  // namespace torch::executor
