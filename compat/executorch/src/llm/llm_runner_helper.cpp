// What runners of language models are made of: tokenizers and facts about the model.
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/runtime/platform/runtime.h>
#include <pytorch/tokenizers/compiled_tokenizer.h>
#include <pytorch/tokenizers/llama2c_tokenizer.h>
#include <pytorch/tokenizers/tiktoken.h>

#include "files.h"
#include "rushlight/llm/runner/metadata.h"
#include "rushlight/llm/runner/program_model.h"

namespace executorch::extension::llm {
namespace {

using runtime::Error;
using runtime::Result;

// What a program of rushlight.llm.export says; NotFound for another program.
Result<::rushlight::llm::Metadata> metadata_of(const Module& module) {
  const std::shared_ptr<Program> program = module.program();
  if (program == nullptr) return Error::InvalidState;
  const auto map = program->get_named_data_map();
  if (!map.ok()) return map.error();
  const auto json = (*map)->get_data(::rushlight::llm::kMetadataKey);
  if (!json.ok()) return json.error();
  ::rushlight::Message message;
  const auto metadata = ::rushlight::llm::read_metadata(
      {static_cast<const char*>(json->data()), json->size()}, &message);
  ET_CHECK_OK_OR_RETURN_ERROR(metadata.status().code(), "%s", message.text());
  return metadata.value();
}

// The number that a method without inputs returns.
Result<int64_t> number_of(Module& module, const char* method) {
  ET_ASSIGN_OR_RETURN(value, module.get(method));
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return int64_t{value.toBool()};
  ET_LOG(Error, "the method %s of the program returns no whole number", method);
  return Error::InvalidProgram;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::unique_ptr<tokenizers::Tokenizer> load_tokenizer(
    const std::string& tokenizer_path, std::unique_ptr<std::vector<std::string>> special_tokens,
    std::optional<std::string>, size_t bos_token_index, size_t eos_token_index) {
  runtime::runtime_init();
  if (ends_with(tokenizer_path, ".bin")) {
    auto llama2c = std::make_unique<tokenizers::Llama2cTokenizer>();
    if (llama2c->load(tokenizer_path) == tokenizers::Error::Ok) return llama2c;
  }
  std::unique_ptr<tokenizers::CompiledTokenizer> compiled;
  if (special_tokens != nullptr) {
    compiled = std::make_unique<tokenizers::Tiktoken>(std::move(special_tokens), bos_token_index,
                                                      eos_token_index);
  } else {
    compiled = std::make_unique<tokenizers::CompiledTokenizer>();
  }
  if (compiled->load(tokenizer_path) == tokenizers::Error::Ok) return compiled;
  return nullptr;
}

Result<std::unordered_map<std::string, int64_t>> get_llm_metadata(tokenizers::Tokenizer* tokenizer,
                                                                  Module* module) {
  ET_CHECK_OR_RETURN_ERROR(tokenizer != nullptr && module != nullptr, InvalidArgument,
                           "a tokenizer and a module are needed");
  ET_ASSIGN_OR_RETURN(methods, module->method_names());
  std::unordered_map<std::string, int64_t> facts = {{kEnableDynamicShape, 0},
                                                    {kMaxSeqLen, 0},
                                                    {kMaxContextLen, 0},
                                                    {kUseKVCache, 1},
                                                    {kUseSDPAWithKVCache, 0}};
  const auto own = metadata_of(*module);
  if (own.ok()) {
    facts[kEnableDynamicShape] = 1;
    facts[kMaxSeqLen] = facts[kMaxContextLen] = static_cast<int64_t>(own->facts.context);
  }
  for (auto& fact : facts) {
    if (methods.count(fact.first) == 0) continue;
    ET_ASSIGN_OR_RETURN(number, number_of(*module, fact.first.c_str()));
    fact.second = number;
  }
  ET_CHECK_OR_RETURN_ERROR(facts[kMaxSeqLen] > 0, InvalidArgument,
                           "the program does not say how long a text may be: it has neither a "
                           "method %s nor what rushlight.llm.export writes",
                           kMaxSeqLen);
  if (facts[kMaxContextLen] == 0) facts[kMaxContextLen] = facts[kMaxSeqLen];
  facts[kBosId] = static_cast<int64_t>(tokenizer->bos_tok());
  facts[kVocabSize] = tokenizer->vocab_size();
  return facts;
}

std::unordered_set<uint64_t> get_eos_ids(tokenizers::Tokenizer* tokenizer, Module* module) {
  std::unordered_set<uint64_t> ends;
  const auto methods = module->method_names();
  if (methods.ok() && methods->count(kEosIds) > 0) {
    const auto values = module->execute(kEosIds);
    for (size_t i = 0; values.ok() && i < values->size(); ++i) {
      if (values.get()[i].isInt()) ends.insert(static_cast<uint64_t>(values.get()[i].toInt()));
    }
  } else if (methods.ok()) {
    const auto own = metadata_of(*module);
    if (own.ok()) ends.insert(own->ends.begin(), own->ends.end());
  }
  if (ends.empty()) ends.insert(tokenizer->eos_tok());
  return ends;
}

}  // namespace executorch::extension::llm
