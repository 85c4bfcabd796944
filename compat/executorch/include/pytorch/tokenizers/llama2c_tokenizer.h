// The tokenizers of llama2.c (tokenizer.bin): BPE whose merges are the tokens with the best scores.
#pragma once

#include <pytorch/tokenizers/tokenizer.h>

#include <memory>

namespace tokenizers {

class Llama2cTokenizer : public Tokenizer {
 public:
  Llama2cTokenizer();
  ~Llama2cTokenizer() override;
  Llama2cTokenizer(const Llama2cTokenizer&) = delete;
  Llama2cTokenizer& operator=(const Llama2cTokenizer&) = delete;

  // LoadFailure for a file that cannot be read, ParseFailure for one of another format.
  Error load(const std::string& tokenizer_path) override;
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<uint64_t> piece_to_id(const std::string& text) const override;
  // EncodeFailure for an empty text, or one with a byte that no token stands for.
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos = 0,
                                       int8_t eos = 0) const override;
  using Tokenizer::decode;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;

 private:
  struct Vocabulary;

  std::unique_ptr<Vocabulary> vocabulary_;
};

}  // namespace tokenizers
