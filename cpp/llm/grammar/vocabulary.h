// The tokens of a model as a grammar sees them: the bytes that each adds to the text. It is made
// once for a tokenizer and shared by all grammars.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/token_trie.h"

namespace rushlight::llm {

class Vocabulary {
 public:
  // How the tokenizer itself writes a text: the tokens of `text`, without special ones.
  using Encode = std::function<bool(StringView text, std::vector<int32_t>* tokens)>;

  struct Parts {
    std::vector<std::string>
        pieces;                    // by token: the bytes that it adds; of special ones their names
    std::vector<int32_t> special;  // which stand for no text
    std::vector<int32_t> ends;     // which end a reply
    Encode encode;                 // if empty, the longest tokens are taken
  };

  static Result<std::shared_ptr<const Vocabulary>> make(Parts parts, Message* message);

  size_t size() const { return parts_.pieces.size(); }
  const std::string& piece(int32_t token) const {
    return parts_.pieces[static_cast<size_t>(token)];
  }
  const std::vector<int32_t>& ends() const { return parts_.ends; }
  bool is_end(int32_t token) const;
  bool holds(int32_t token) const { return token >= 0 && static_cast<size_t>(token) < size(); }
  // The special token of this name, or -1.
  int32_t special(StringView name) const;

  // Special tokens have bytes that no text has, so that automata can ask for them: kMark, their
  // number, kMark.
  static constexpr char kMark = '\xFF';
  static std::string marked(int32_t token);
  // What a token adds to the text that an automaton reads.
  const std::string& bytes(int32_t token) const { return bytes_[static_cast<size_t>(token)]; }
  const grammar::TokenTrie& trie() const { return *trie_; }
  // Tokens for a text that an automaton forces. Stops before what has no token.
  void encode(StringView bytes, std::vector<int32_t>* tokens) const;

 private:
  explicit Vocabulary(Parts parts);
  void encode_text(StringView text, std::vector<int32_t>* tokens) const;

  Parts parts_;
  std::vector<std::string> bytes_;
  std::unique_ptr<grammar::TokenTrie> trie_;
};

}  // namespace rushlight::llm
