// A tokenizer that was compiled to a table (docs/llm/tokenizer.md), from the program of a language
// model or from a file of its own. All kinds of tokenizers are such tables here: what they have of
// their own (merges, patterns, normalisers, special tokens) is in the table.
#pragma once

#include <pytorch/tokenizers/tokenizer.h>

#include <memory>

namespace tokenizers {

class CompiledTokenizer : public Tokenizer {
 public:
  CompiledTokenizer();
  ~CompiledTokenizer() override;
  CompiledTokenizer(const CompiledTokenizer&) = delete;
  CompiledTokenizer& operator=(const CompiledTokenizer&) = delete;

  // A table, or a program (.pte) with one. LoadFailure for a file that cannot be read, or that is
  // what a table is compiled from: the log says how. ParseFailure for one that is damaged.
  Error load(const std::string& tokenizer_path) override;
  // A table in memory, which is copied.
  Error load_table(const void* data, size_t size);

  // The bytes that the token adds to a text: " of" where SentencePiece writes "▁of".
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<uint64_t> piece_to_id(const std::string& text) const override;
  // EncodeFailure if tokens that begin or end a text are asked for and there are none.
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos = 0,
                                       int8_t eos = 0) const override;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;
  Result<std::string> decode(const std::vector<uint64_t>& tokens,
                             bool skip_special_tokens = false) const override;

  const CompiledTokenizer* rushlight_tokenizer() const override { return this; }
  // The table; it lives as long as the tokenizer.
  const void* table_data() const;
  size_t table_size() const;

 protected:
  void set_bos(uint64_t token);
  void set_eos(uint64_t token);

 private:
  struct Impl;
  Error open(const void* table, size_t size);
  void find_ends();
  Error check(uint64_t token) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenizers
