// The tokenizers of llama2.c.
//
// A file has four numbers of 32 bits: how many tokens there are, those that begin and end a text,
// and the bytes of the longest one. Each token follows as its score, the number of its bytes and
// the bytes. A file may end after any token; the rest are "<pad>".
#include <pytorch/tokenizers/llama2c_tokenizer.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "files.h"

namespace tokenizers {
namespace {

constexpr int32_t kMostTokens = 1 << 20;  // a file of 16 bytes may promise as many
constexpr size_t kFirstByteToken = 3;     // after those for unknown text and both ends

// Reads numbers and texts one after the other.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool at_end() const { return bytes_.empty(); }
  template <typename T>
  bool read(T* number) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(number, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }
  bool read(size_t size, std::string* text) {
    if (bytes_.size() < size) return false;
    text->assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view bytes_;
};

// The bytes of the character that a text begins with, at most four. Bytes that continue no
// character stand alone.
size_t character_size(std::string_view text) {
  size_t size = 1;
  while (size < 4 && size < text.size() && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) {
    ++size;
  }
  return size;
}

}  // namespace

struct Llama2cTokenizer::Vocabulary {
  Error read(Reader file, int32_t count);
  // Appends the tokens of a text's characters.
  bool spell(std::string_view text, std::vector<uint64_t>* tokens) const;
  void merge(std::vector<uint64_t>* tokens) const;
  const uint64_t* find(const std::string& piece) const {
    const auto found = numbers.find(piece);
    return found != numbers.end() ? &found->second : nullptr;
  }

  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::unordered_map<std::string, uint64_t> numbers;
};

Error Llama2cTokenizer::Vocabulary::read(Reader file, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    float score = 0.0f;
    int32_t size = 0;
    std::string piece = "<pad>";
    if (!file.at_end()) {
      TK_CHECK_OR_RETURN_ERROR(
          file.read(&score) && file.read(&size) && size >= 0 && file.read(size, &piece),
          ParseFailure, "the file ends within token %" PRId32 " of %" PRId32, i, count);
    }
    numbers.emplace(piece, i);
    pieces.push_back(std::move(piece));
    scores.push_back(score);
  }
  return Error::Ok;
}

bool Llama2cTokenizer::Vocabulary::spell(std::string_view text,
                                         std::vector<uint64_t>* tokens) const {
  if (const uint64_t* space = find(" ")) tokens->push_back(*space);
  while (!text.empty()) {
    const std::string character(text.substr(0, character_size(text)));
    text.remove_prefix(character.size());
    if (const uint64_t* token = find(character)) {
      tokens->push_back(*token);
      continue;
    }
    for (const char byte : character) {
      const size_t token = kFirstByteToken + static_cast<uint8_t>(byte);
      if (token >= pieces.size()) return false;
      tokens->push_back(token);
    }
  }
  return true;
}

// Joins the pair whose token has the best score, the first of equals, until none is left.
void Llama2cTokenizer::Vocabulary::merge(std::vector<uint64_t>* tokens) const {
  constexpr size_t kEnd = SIZE_MAX;
  struct Pair {
    float score;
    size_t left, right;
    uint64_t left_token, right_token, token;
    bool operator<(const Pair& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  const size_t count = tokens->size();
  std::vector<size_t> next(count), before(count);
  std::vector<bool> is_gone(count);
  for (size_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kEnd;
    before[i] = i > 0 ? i - 1 : kEnd;
  }
  std::priority_queue<Pair> pairs;
  const auto add = [&](size_t left) {
    const size_t right = left != kEnd ? next[left] : kEnd;
    if (right == kEnd) return;
    const uint64_t a = (*tokens)[left], b = (*tokens)[right];
    if (const uint64_t* token = find(pieces[a] + pieces[b])) {
      pairs.push({scores[*token], left, right, a, b, *token});
    }
  };
  for (size_t i = 0; i < count; ++i) add(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    const bool is_there = !is_gone[pair.left] && next[pair.left] == pair.right &&
                          (*tokens)[pair.left] == pair.left_token &&
                          (*tokens)[pair.right] == pair.right_token;
    if (!is_there) continue;
    (*tokens)[pair.left] = pair.token;
    is_gone[pair.right] = true;
    next[pair.left] = next[pair.right];
    if (next[pair.left] != kEnd) before[next[pair.left]] = pair.left;
    add(before[pair.left]);
    add(pair.left);
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_gone[i]) (*tokens)[kept++] = (*tokens)[i];
  }
  tokens->resize(kept);
}

Llama2cTokenizer::Llama2cTokenizer() = default;
Llama2cTokenizer::~Llama2cTokenizer() = default;

Error Llama2cTokenizer::load(const std::string& tokenizer_path) {
  if (initialized_) return Error::Ok;
  std::string bytes;
  TK_CHECK_OR_RETURN_ERROR(internal::read_file(tokenizer_path, &bytes), LoadFailure,
                           "the tokenizer %s cannot be read", tokenizer_path.c_str());
  Reader file(bytes);
  int32_t count = 0, bos = 0, eos = 0, longest = 0;
  const bool has_head =
      file.read(&count) && file.read(&bos) && file.read(&eos) && file.read(&longest);
  TK_CHECK_OR_RETURN_ERROR(has_head && count > 0 && count <= kMostTokens && bos >= 0 &&
                               bos < count && eos >= 0 && eos < count,
                           ParseFailure,
                           "%s is no tokenizer of llama2.c: its first numbers are none",
                           tokenizer_path.c_str());
  auto vocabulary = std::make_unique<Vocabulary>();
  TK_CHECK_OK_OR_RETURN_ERROR(vocabulary->read(file, count));
  vocabulary_ = std::move(vocabulary);
  vocab_size_ = count;
  bos_tok_ = static_cast<uint64_t>(bos);
  eos_tok_ = static_cast<uint64_t>(eos);
  initialized_ = true;
  return Error::Ok;
}

Result<std::string> Llama2cTokenizer::id_to_piece(uint64_t token) const {
  if (!initialized_) return Error::Uninitialized;
  if (token >= vocabulary_->pieces.size()) return Error::OutOfRange;
  return vocabulary_->pieces[token];
}

Result<uint64_t> Llama2cTokenizer::piece_to_id(const std::string& text) const {
  if (!initialized_) return Error::Uninitialized;
  const uint64_t* token = vocabulary_->find(text);
  TK_CHECK_OR_RETURN_ERROR(token != nullptr, OutOfRange, "no token is \"%s\"", text.c_str());
  return *token;
}

Result<std::vector<uint64_t>> Llama2cTokenizer::encode(const std::string& input, int8_t bos,
                                                       int8_t eos) const {
  if (!initialized_) return Error::Uninitialized;
  TK_CHECK_OR_RETURN_ERROR(!input.empty(), EncodeFailure, "the text is empty");
  TK_CHECK_OR_RETURN_ERROR(bos >= 0 && eos >= 0, EncodeFailure,
                           "bos is %d and eos %d: neither may be negative", bos, eos);
  std::vector<uint64_t> text;
  TK_CHECK_OR_RETURN_ERROR(vocabulary_->spell(input, &text), EncodeFailure,
                           "the text has bytes that no token of the %zu stands for",
                           vocabulary_->pieces.size());
  std::vector<uint64_t> tokens(static_cast<size_t>(bos), bos_tok_);
  // A token that begins a text may be the first half of a pair, as in llama2.c.
  tokens.insert(tokens.end(), text.begin(), text.end());
  vocabulary_->merge(&tokens);
  tokens.insert(tokens.end(), static_cast<size_t>(eos), eos_tok_);
  return tokens;
}

Result<std::string> Llama2cTokenizer::decode(uint64_t prev_token, uint64_t token, bool) const {
  if (!initialized_) return Error::Uninitialized;
  if (token >= vocabulary_->pieces.size()) return Error::OutOfRange;
  const std::string& piece = vocabulary_->pieces[token];
  unsigned byte = 0;
  char close = 0;
  if (piece.size() == 6 && std::sscanf(piece.c_str(), "<0x%2X%c", &byte, &close) == 2 &&
      close == '>') {
    return std::string(1, static_cast<char>(byte));
  }
  const bool is_first = prev_token == bos_tok_ && !piece.empty() && piece[0] == ' ';
  return is_first ? piece.substr(1) : piece;
}

}  // namespace tokenizers
