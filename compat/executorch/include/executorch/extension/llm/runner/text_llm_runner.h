// Runs a language model: Rushlight's runner under ExecuTorch's name.
#pragma once

#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/module/module.h>
#include <pytorch/tokenizers/tokenizer.h>

#include <memory>
#include <string>

namespace executorch::extension::llm {

// One text at a time, to which prompts and what is generated are added until reset().
class TextLLMRunner : public IRunner {
 public:
  struct Impl;
  explicit TextLLMRunner(std::unique_ptr<Impl> impl);
  // A runner of parts (TextDecoderRunner, TextPrefiller, …) is not to be had.
  template <typename... Parts>
  explicit TextLLMRunner(const Parts&...) {
    static_assert(sizeof...(Parts) == SIZE_MAX,
                  "the parts of a runner are not public here: use create_text_llm_runner()");
  }
  ~TextLLMRunner() override;

  bool is_loaded() const override;
  runtime::Error load() override;
  // The callback gets the text as it grows, in whole characters; without end tokens. Unless
  // `config.warming`, the text and a report are printed as well. InvalidArgument for a prompt that
  // is empty or longer than the room that there is.
  runtime::Error generate(const std::string& prompt, const GenerationConfig& config,
                          std::function<void(const std::string&)> token_callback = {},
                          std::function<void(const Stats&)> stats_callback = {}) override;
  // Adds a prompt to the text.
  runtime::Error prefill(const std::string& prompt, const GenerationConfig& config = {});
  // Generates without printing, and begins a new text.
  runtime::Error warmup(const std::string& prompt, int32_t max_new_tokens);
  void stop() override;
  void reset() override;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace executorch::extension::llm
