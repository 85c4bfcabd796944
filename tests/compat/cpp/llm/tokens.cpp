// What a tokenizer makes of a text, by the interface of all tokenizers.
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <pytorch/tokenizers/hf_tokenizer.h>
#include <pytorch/tokenizers/llama2c_tokenizer.h>
#include <pytorch/tokenizers/sentencepiece.h>
#include <pytorch/tokenizers/tiktoken.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using tokenizers::Error;
using tokenizers::Result;
using tokenizers::Tokenizer;

void print_text(const char* what, const std::string& text);

namespace {

// The text of tokens one after the other.
Result<std::string> decode_each(const Tokenizer& tokenizer, const std::vector<uint64_t>& tokens) {
  std::string text;
  uint64_t before = tokenizer.bos_tok();
  for (const uint64_t token : tokens) {
    text += TK_UNWRAP(tokenizer.decode(before, token));
    before = token;
  }
  return text;
}

}  // namespace

int print_tokens(const char* path, const char* text) {
  tokenizers::HFTokenizer empty;
  if (empty.is_loaded() || empty.encode("a").error() != Error::Uninitialized) return 10;
  if (empty.load("no such file") != Error::LoadFailure) return 11;
  const std::unique_ptr<Tokenizer> tokenizer = executorch::extension::llm::load_tokenizer(path);
  if (tokenizer == nullptr) return 3;
  const auto tokens = tokenizer->encode(text, 0, 0);
  if (!tokens.ok()) return 12;
  std::printf("=tokens");
  for (const uint64_t token : *tokens) std::printf(" %d", static_cast<int>(token));
  std::printf("\n=ends %d %d %d\n", static_cast<int>(tokenizer->bos_tok()),
              static_cast<int>(tokenizer->eos_tok()), static_cast<int>(tokenizer->vocab_size()));
  const auto each = decode_each(*tokenizer, *tokens);
  const auto whole = tokenizer->decode(*tokens);
  if (!each.ok() || !whole.ok()) return 13;
  print_text("each", *each);
  print_text("whole", *whole);
  const auto wrapped = tokenizer->encode(text, 1, 1);
  if (wrapped.ok()) {
    std::printf("=wrapped %d %d %d\n", static_cast<int>(wrapped->front()),
                static_cast<int>(wrapped->back()), static_cast<int>(wrapped->size()));
  }
  const auto beyond = static_cast<uint64_t>(tokenizer->vocab_size());
  if (tokenizer->id_to_piece(beyond).error() != Error::OutOfRange) return 14;
  if (tokenizer->piece_to_id("no token has such a text").error() != Error::OutOfRange) return 15;
  for (const uint64_t token : *tokens) {
    const auto piece = tokenizer->id_to_piece(token);
    const auto found = tokenizer->piece_to_id(*piece);
    if (!found.ok() || *tokenizer->id_to_piece(*found) != *piece) return 16;
  }
  return 0;
}
