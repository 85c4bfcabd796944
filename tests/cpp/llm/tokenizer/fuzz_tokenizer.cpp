// Damaged tables of tokenizers, and texts that are not UTF-8: errors, or tokens of some kind, but
// nothing worse. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_tokenizer ROUNDS TABLE...: prints how many damaged tables could be opened.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/tokenizer/stream.h"
#include "rushlight/llm/tokenizer/tokenizer.h"
#include "seed.h"

namespace {

using namespace rushlight;

// A copy of bytes in memory of exactly their size, at a multiple of 8, so that reads beyond it are
// seen.
class Bytes {
 public:
  explicit Bytes(const std::vector<uint8_t>& bytes)
      : size_(bytes.size()), data_(static_cast<uint8_t*>(std::malloc(size_ == 0 ? 1 : size_))) {
    if (size_ != 0) std::memcpy(data_, bytes.data(), size_);
  }
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  Span<const uint8_t> span() const { return {data_, size_}; }

 private:
  size_t size_;
  uint8_t* data_;
};

std::vector<uint8_t> read_file(const char* path) {
  std::vector<uint8_t> bytes;
  std::FILE* file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  if (file == nullptr) return bytes;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    bytes.push_back(static_cast<uint8_t>(c));
  }
  std::fclose(file);
  return bytes;
}

class Fuzz {
 public:
  explicit Fuzz(unsigned seed) : random_(seed) {}

  // Some numbers of the head and of sections are changed, or the end is cut off.
  void damage(std::vector<uint8_t>* table) {
    const size_t head = 16 + 24 * size_t{(*table)[8]};
    for (size_t n = 1 + below(3); n > 0; --n) {
      const size_t way = below(20);
      if (way == 0) {
        table->resize(below(table->size()) + 1);
      } else if (way < 6) {
        put(table, below(head < table->size() ? head : table->size()));
      } else {
        put(table, section_place(*table, head));
      }
    }
  }

  std::string text() {
    static const char* const kParts[] = {"the smallest torch",
                                         " they'll",
                                         "12345",
                                         "<|end|>",
                                         "<sep>",
                                         "<s>",
                                         "[CLS]",
                                         "\xE4\xB8\xAD",
                                         "\xC3\xA9",
                                         "e\xCC\x81",
                                         "\r\n\n",
                                         "\xF0\x9F\x98\x80",
                                         "\xE2\x96\x81",
                                         "\xFF",
                                         "\xE4\xB8",
                                         "\xED\xA0\x80",
                                         "\xEF\xBC\xB7",
                                         "aaaaaaaaaaaaaaaaaaaaaaaa"};
    std::string made;
    for (size_t n = below(12); n > 0; --n) {
      const size_t way = below(4);
      if (way == 0) {
        made.push_back(static_cast<char>(below(256)));
      } else if (way == 1) {
        made.append(below(80), static_cast<char>(below(128)));
      } else {
        made += kParts[below(sizeof kParts / sizeof kParts[0])];
      }
    }
    return made;
  }

  size_t below(size_t n) { return random_() % n; }

 private:
  size_t section_place(const std::vector<uint8_t>& table, size_t head) {
    const size_t sections = (head - 16) / 24;
    if (sections == 0 || head > table.size()) return below(table.size());
    uint64_t offset, size;
    const size_t entry = 16 + 24 * below(sections);
    std::memcpy(&offset, &table[entry + 8], 8);
    std::memcpy(&size, &table[entry + 16], 8);
    if (offset >= table.size() || size == 0) return below(table.size());
    return (offset + below(size < 64 || below(2) == 0 ? size : 64)) % table.size();
  }
  void put(std::vector<uint8_t>* table, size_t at) {
    static constexpr uint32_t kNumbers[] = {0,   1,      2,        8,          255,
                                            256, 0xFFFF, 0x10FFFF, 0x7FFFFFFF, ~0u};
    uint32_t number = kNumbers[below(sizeof kNumbers / sizeof kNumbers[0])];
    if (below(3) == 0) number = static_cast<uint32_t>(random_());
    const size_t width = below(2) == 0 ? 1 : 4;
    if (width == 4) at &= ~size_t{3};
    if (at + width <= table->size()) std::memcpy(table->data() + at, &number, width);
  }

  std::mt19937 random_;
};

void use(const llm::Tokenizer& tokenizer, Fuzz* fuzz) {
  for (int i = 0; i < 4; ++i) {
    const std::string text = fuzz->text();
    std::vector<int32_t> tokens;
    Message message;
    CHECK(tokenizer
              .encode({text.data(), text.size()}, fuzz->below(2) == 0, fuzz->below(2) == 0, &tokens,
                      &message)
              .ok());
    const auto vocabulary = static_cast<int32_t>(tokenizer.vocabulary());
    llm::TextStream stream(tokenizer, false);
    std::string streamed;
    for (const int32_t token : tokens) {
      CHECK(token >= 0 && token < vocabulary);
      const StringView piece = stream.push(token);
      streamed.append(piece.data(), piece.size());
    }
    const StringView rest = stream.flush();
    streamed.append(rest.data(), rest.size());
    CHECK(streamed == tokenizer.decode({tokens.data(), tokens.size()}, false));
    const auto any = static_cast<int32_t>(fuzz->below(1 << 20)) - 8;
    (void)tokenizer.piece(any);
    (void)tokenizer.special({text.data(), text.size()});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  Fuzz fuzz(test::seed_for(1));
  for (int i = 2; i < argc; ++i) {
    const std::vector<uint8_t> good = read_file(argv[i]);
    int opened_count = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<uint8_t> table = good;
      if (round > 0) fuzz.damage(&table);
      const Bytes bytes(table);
      Message message;
      Result<llm::Tokenizer> opened = llm::Tokenizer::open(bytes.span(), &message);
      CHECK(opened.ok() || !message.empty());
      CHECK(opened.ok() || round > 0);
      if (!opened.ok()) continue;
      ++opened_count;
      use(*opened, &fuzz);
    }
    CHECK(opened_count > rounds / 10);
    std::printf("%s: %d of %d opened\n", argv[i], opened_count, rounds);
  }
  return test::check_result();
}
