// Runs a language model: Rushlight's runner under ExecuTorch's name.
#pragma once

#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/runner/text_prefiller.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/extension/module/module.h>
#include <pytorch/tokenizers/tokenizer.h>

#include <memory>
#include <string>
#include <unordered_map>

namespace executorch::extension::llm {

// One text at a time, to which prompts and what is generated are added until reset().
class TextLLMRunner : public IRunner {
 public:
  struct Impl;
  explicit TextLLMRunner(std::unique_ptr<Impl> impl);
  // A runner of parts, which may be derived from those here. It is slower than that of
  // create_text_llm_runner(), and runs only programs of the form that ExecuTorch's runner takes.
  explicit TextLLMRunner(std::unordered_map<std::string, int64_t> metadata,
                         std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                         std::unique_ptr<Module> module,
                         std::unique_ptr<TextDecoderRunner> text_decoder_runner,
                         std::unique_ptr<TextPrefiller> text_prefiller,
                         std::unique_ptr<IOManager> io_manager,
                         std::unique_ptr<TextTokenGenerator> text_token_generator,
                         std::unique_ptr<Stats> stats, float temperature = -1.0f);
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
