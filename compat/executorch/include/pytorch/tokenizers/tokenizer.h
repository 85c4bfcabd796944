// What a tokenizer does: text to tokens, and tokens to text.
#pragma once

#include <pytorch/tokenizers/error.h>
#include <pytorch/tokenizers/result.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tokenizers {

struct TokenIndex {
  const char* str;
  int32_t id;
};

class CompiledTokenizer;

class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() = default;

  virtual Error load(const std::string& tokenizer_path) = 0;
  virtual Result<std::string> id_to_piece(uint64_t token) const = 0;
  virtual Result<uint64_t> piece_to_id(const std::string& text) const = 0;
  // The tokens of a text, after `bos` tokens that begin a text and before `eos` that end one.
  virtual Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos = 0,
                                               int8_t eos = 0) const = 0;
  // The bytes that a token adds to a text; they need not be whole characters.
  virtual Result<std::string> decode(uint64_t prev_token, uint64_t token,
                                     bool skip_special_tokens = false) const = 0;
  // The text of tokens.
  virtual Result<std::string> decode(const std::vector<uint64_t>& tokens,
                                     bool skip_special_tokens = false) const {
    std::string text;
    uint64_t before = bos_tok();
    for (const uint64_t token : tokens) {
      Result<std::string> piece = decode(before, token, skip_special_tokens);
      if (!piece.ok()) return piece.error();
      text += piece.get();
      before = token;
    }
    return text;
  }

  int32_t vocab_size() const { return vocab_size_; }
  uint64_t bos_tok() const { return bos_tok_; }
  uint64_t eos_tok() const { return eos_tok_; }
  virtual bool is_loaded() const { return initialized_; }
  // The table that this tokenizer is, if it is one: runners then make whole characters of tokens.
  virtual const CompiledTokenizer* rushlight_tokenizer() const { return nullptr; }

 protected:
  bool initialized_ = false;
  int32_t vocab_size_ = 0;
  uint64_t bos_tok_ = 0, eos_tok_ = 0, unk_tok_ = 0;
};

}  // namespace tokenizers
