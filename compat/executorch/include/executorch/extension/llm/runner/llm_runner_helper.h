// Makes runners of language models, and what they need.
#pragma once

#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>
#include <pytorch/tokenizers/tokenizer.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm {

class TextLLMRunner;
class MultimodalRunner;

// The tokenizer of a file: a compiled table, a program (.pte) that has one, or the tokenizer.bin of
// llama2.c. nullptr for another file: the log says how it is compiled.
std::unique_ptr<tokenizers::Tokenizer> load_tokenizer(
    const std::string& tokenizer_path,
    std::unique_ptr<std::vector<std::string>> special_tokens = nullptr,
    std::optional<std::string> pattern = std::nullopt, size_t bos_token_index = 0,
    size_t eos_token_index = 1);

// What a program and its tokenizer say of the model. InvalidArgument if the program does not say
// how long a text may be.
runtime::Result<std::unordered_map<std::string, int64_t>> get_llm_metadata(
    tokenizers::Tokenizer* tokenizer, Module* module);
// The tokens that end a text.
std::unordered_set<uint64_t> get_eos_ids(tokenizers::Tokenizer* tokenizer, Module* module);

// A runner of a program of Rushlight's, or of one of the form that ExecuTorch's own runner takes.
// Without a tokenizer, the program's own is used. The temperature is that of all texts, unless it
// is -1. nullptr if the program is no language model: the log says why.
std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::vector<std::string> data_files = {}, float temperature = -1.0f,
    std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
    const std::string& method_name = "forward",
    Module::LoadMode load_mode = Module::LoadMode::MmapUseMlockIgnoreErrors);
std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path, float temperature = -1.0f,
    const std::string& method_name = "forward",
    Module::LoadMode load_mode = Module::LoadMode::MmapUseMlockIgnoreErrors);

template <typename... Arguments>
std::unique_ptr<MultimodalRunner> create_multimodal_runner(const Arguments&...) {
  static_assert(sizeof...(Arguments) == SIZE_MAX,
                "models of images and sound have no runner here: use create_text_llm_runner() for "
                "text, and a Module for the encoder of a model of your own");
  return nullptr;
}

}  // namespace executorch::extension::llm
