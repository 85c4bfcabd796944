#include "rushlight/llm/grammar/vocabulary.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {

std::string Vocabulary::marked(int32_t token) { return kMark + std::to_string(token) + kMark; }

Result<std::shared_ptr<const Vocabulary>> Vocabulary::make(Parts parts, Message* message) {
  const size_t size = parts.pieces.size();
  if (size == 0 || size > (size_t{1} << 24)) {
    return message->fail(Code::InvalidArgument, "a vocabulary of %zu tokens: 1 to 16777216 can be",
                         size);
  }
  for (const auto* tokens : {&parts.special, &parts.ends}) {
    for (const int32_t token : *tokens) {
      if (token >= 0 && static_cast<size_t>(token) < size) continue;
      return message->fail(Code::InvalidArgument,
                           "the %s token %d is not in the vocabulary of %zu tokens",
                           tokens == &parts.ends ? "end" : "special", token, size);
    }
  }
  return guard("list the tokens for grammars", message, [&] {
    return Result<std::shared_ptr<const Vocabulary>>(
        std::shared_ptr<const Vocabulary>(new Vocabulary(std::move(parts))));
  });
}

Vocabulary::Vocabulary(Parts parts) : parts_(std::move(parts)) {
  bytes_ = parts_.pieces;
  // What has a mark within is no text: such tokens stay out of the tree.
  for (std::string& bytes : bytes_) {
    if (bytes.find(kMark) != std::string::npos) bytes.clear();
  }
  for (const int32_t token : parts_.special) bytes_[static_cast<size_t>(token)] = marked(token);
  for (const int32_t token : parts_.ends) bytes_[static_cast<size_t>(token)] = marked(token);
  trie_ = std::make_unique<grammar::TokenTrie>(bytes_);
}

bool Vocabulary::is_end(int32_t token) const {
  return std::find(parts_.ends.begin(), parts_.ends.end(), token) != parts_.ends.end();
}

int32_t Vocabulary::special(StringView name) const {
  for (const auto* tokens : {&parts_.special, &parts_.ends}) {
    for (const int32_t token : *tokens) {
      const std::string& text = piece(token);
      if (StringView(text.data(), text.size()) == name) return token;
    }
  }
  return -1;
}

void Vocabulary::encode_text(StringView text, std::vector<int32_t>* tokens) const {
  const size_t before = tokens->size();
  if (parts_.encode && parts_.encode(text, tokens)) {
    // A tokenizer may add or change text, such as a space at the start.
    std::string back;
    for (size_t i = before; i < tokens->size(); ++i) {
      if (holds((*tokens)[i])) back += bytes((*tokens)[i]);
    }
    if (StringView(back.data(), back.size()) == text) return;
  }
  tokens->resize(before);
  for (size_t at = 0; at < text.size();) {
    const StringView rest(text.data() + at, text.size() - at);
    const int32_t token = trie_->longest_prefix(rest);
    if (token < 0) return;
    tokens->push_back(token);
    at += bytes(token).size();
  }
}

void Vocabulary::encode(StringView all, std::vector<int32_t>* tokens) const {
  for (size_t at = 0; at < all.size();) {
    const StringView rest(all.data() + at, all.size() - at);
    const auto* mark = static_cast<const char*>(std::memchr(rest.data(), kMark, rest.size()));
    const size_t text = mark == nullptr ? rest.size() : static_cast<size_t>(mark - rest.data());
    size_t written = 0;
    const size_t before = tokens->size();
    if (text > 0) encode_text({rest.data(), text}, tokens);
    for (size_t i = before; i < tokens->size(); ++i) written += bytes((*tokens)[i]).size();
    if (written < text) return;
    at += text;
    if (text > 0 || at >= all.size()) continue;
    const int32_t token = trie_->longest_prefix(rest);
    if (token < 0) return;
    tokens->push_back(token);
    at += bytes(token).size();
  }
}

}  // namespace rushlight::llm
