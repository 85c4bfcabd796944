// Tokenizers of tiktoken, compiled from an encoding. Its pattern and its special tokens are in the
// table; of those that a constructor gets, only the ones that begin and end a text are used.
#pragma once

#include <pytorch/tokenizers/compiled_tokenizer.h>

#include <memory>
#include <utility>

namespace tokenizers {

constexpr int32_t kSpecialTokensSize = 256;
constexpr size_t kBOSTokenIndex = 0;
constexpr size_t kEOSTokenIndex = 1;

class Tiktoken : public CompiledTokenizer {
 public:
  Tiktoken() = default;
  Tiktoken(std::unique_ptr<std::vector<std::string>> special_tokens, size_t bos_token_index,
           size_t eos_token_index)
      : special_(std::move(special_tokens)), bos_(bos_token_index), eos_(eos_token_index) {}
  Tiktoken(const std::vector<std::string>& special_tokens, size_t bos_token_index,
           size_t eos_token_index)
      : Tiktoken(std::make_unique<std::vector<std::string>>(special_tokens), bos_token_index,
                 eos_token_index) {}
  Tiktoken(std::string, std::unique_ptr<std::vector<std::string>> special_tokens,
           size_t bos_token_index, size_t eos_token_index)
      : Tiktoken(std::move(special_tokens), bos_token_index, eos_token_index) {}
  Tiktoken(std::string, const std::vector<std::string>& special_tokens, size_t bos_token_index,
           size_t eos_token_index)
      : Tiktoken(special_tokens, bos_token_index, eos_token_index) {}

  // LoadFailure if the table lacks the special tokens that begin and end a text.
  Error load(const std::string& tokenizer_path) override;

 private:
  Result<uint64_t> find(size_t index) const;

  std::unique_ptr<std::vector<std::string>> special_;  // nullptr: what the table says
  size_t bos_ = kBOSTokenIndex, eos_ = kEOSTokenIndex;
};

}  // namespace tokenizers
