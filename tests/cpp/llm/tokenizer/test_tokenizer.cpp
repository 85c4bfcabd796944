// Tokenizers over tables of tests/golden: what a text becomes, streams, errors, long runs, threads.
//
// Usage: test_tokenizer FOLDER
#include "rushlight/llm/tokenizer/tokenizer.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "rushlight/llm/tokenizer/scratch.h"
#include "rushlight/llm/tokenizer/stream.h"

namespace {

using namespace rushlight;

struct Opened {
  std::vector<uint64_t> memory;
  size_t size = 0;
  llm::Tokenizer tokenizer;

  Span<const uint8_t> span() const {
    return {reinterpret_cast<const uint8_t*>(memory.data()), size};
  }
};

Opened open(const std::string& path) {
  Opened opened;
  std::string bytes;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  CHECK(file != nullptr);
  if (file == nullptr) return opened;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    bytes.push_back(static_cast<char>(c));
  }
  std::fclose(file);
  opened.memory.resize(bytes.size() / 8 + 1);
  opened.size = bytes.size();
  std::memcpy(opened.memory.data(), bytes.data(), bytes.size());
  Message message;
  Result<llm::Tokenizer> result = llm::Tokenizer::open(opened.span(), &message);
  CHECK(result.ok());
  if (result.ok()) opened.tokenizer = *result;
  return opened;
}

std::vector<int32_t> encode(const llm::Tokenizer& tokenizer, const std::string& text,
                            bool parse_special = true) {
  std::vector<int32_t> tokens;
  Message message;
  CHECK(tokenizer.encode({text.data(), text.size()}, false, parse_special, &tokens, &message).ok());
  return tokens;
}

std::string decode(const llm::Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  return tokenizer.decode({tokens.data(), tokens.size()}, false);
}

void texts_come_back(const llm::Tokenizer& tokenizer) {
  const std::string text = "They've lit 1234 rushes;\n\n  it's \xE4\xB8\xAD \xF0\x9F\x98\x80!";
  CHECK(decode(tokenizer, encode(tokenizer, text)) == text);
  CHECK(encode(tokenizer, "").empty());
  // Bytes that are not UTF-8 are U+FFFD, one for each maximal subpart.
  CHECK(decode(tokenizer, encode(tokenizer, "a\xFF\xE4\xB8z")) == "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

void checked_and_unchecked_texts_are_one(const llm::Tokenizer& tokenizer) {
  const std::string text = "it's \xE4\xB8\xAD \xF0\x9F\x98\x80\xF4\x8F\xBF\xBF \xC3\xBC";
  std::vector<int32_t> tokens;
  Message message;
  CHECK(tokenizer.encode_utf8({text.data(), text.size()}, false, true, &tokens, &message).ok());
  CHECK(tokens == encode(tokenizer, text));
  // Beyond U+10FFFF, a long form, a cut one: no characters.
  for (const char* bad : {"\xF4\x90\x80\x80", "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98"}) {
    CHECK(decode(tokenizer, encode(tokenizer, bad)).compare(0, 3, "\xEF\xBF\xBD") == 0);
  }
}

void special_tokens_are_text_where_they_must(const llm::Tokenizer& tokenizer) {
  const int32_t end = tokenizer.special("<|end|>");
  CHECK(end >= 0 && tokenizer.is_special(end) && tokenizer.piece(end) == "<|end|>");
  CHECK(encode(tokenizer, "<|end|>") == std::vector<int32_t>{end});
  const std::vector<int32_t> as_text = encode(tokenizer, "<|end|>", false);
  CHECK(as_text.size() > 1 && decode(tokenizer, as_text) == "<|end|>");
  CHECK(tokenizer.special("<|none|>") == -1);
  CHECK(tokenizer.piece(-1).empty() && tokenizer.piece(1 << 30).empty());
  CHECK(!tokenizer.is_special(-1) && !tokenizer.is_special(1 << 30));
}

void streams_give_whole_characters(const llm::Tokenizer& tokenizer) {
  const std::string text = "\xF0\x9F\x98\x80 x";
  llm::TextStream stream(tokenizer);
  std::string joined;
  for (const int32_t token : encode(tokenizer, text)) {
    const StringView piece = stream.push(token);
    CHECK(piece.empty() || (static_cast<uint8_t>(piece.data()[0]) & 0xC0) != 0x80);
    joined.append(piece.data(), piece.size());
  }
  CHECK(stream.flush().empty() && joined == text);
  stream.reset();
  const std::vector<int32_t> cut = encode(tokenizer, "\xF0\x9F\x98\x80");
  CHECK(cut.size() > 1 && stream.push(cut[0]).empty());
  CHECK(stream.flush() == "\xEF\xBF\xBD");
}

// A quadratic algorithm would take hours here.
void long_runs_end(const llm::Tokenizer& tokenizer) {
  const std::string run(1 << 20, 'a');
  CHECK(decode(tokenizer, encode(tokenizer, run)).size() >= run.size());
  std::string spaces(1 << 20, ' ');
  spaces.push_back('x');
  encode(tokenizer, spaces);
}

template <class Buffer>
void is_small(const Buffer& buffer) {
  CHECK(buffer.capacity() * sizeof(typename Buffer::value_type) <= llm::Scratch::kMostKept);
}

// After `long_runs_end`, whose text filled them.
void huge_texts_leave_small_buffers() {
  const llm::Scratch& scratch = *llm::thread_scratch();
  is_small(scratch.symbols);
  is_small(scratch.linked);
  is_small(scratch.merges);
  is_small(scratch.scores);
  is_small(scratch.single_scores);
  is_small(scratch.links);
  is_small(scratch.begins);
  is_small(scratch.dead);
  is_small(scratch.seconds);
  is_small(scratch.letters.codes);
  is_small(scratch.letters.labels);
  is_small(scratch.codes);
  for (const std::string& text : scratch.normalized) is_small(text);
  for (const std::string& text : scratch.pieces) is_small(text);
}

void damaged_tables_are_refused(const Opened& opened) {
  Message message;
  const Span<const uint8_t> all = opened.span();
  CHECK(!llm::Tokenizer::open({all.data(), 10}, &message).ok());
  CHECK(!llm::Tokenizer::open({all.data(), all.size() / 2}, &message).ok());
  CHECK(!llm::Tokenizer::open({all.data() + 1, all.size() - 1}, &message).ok());
  CHECK(std::strstr(message.text(), "multiple of 8") != nullptr);
  std::vector<uint64_t> other = opened.memory;
  reinterpret_cast<uint8_t*>(other.data())[4] = 9;
  const Span<const uint8_t> changed(reinterpret_cast<const uint8_t*>(other.data()), opened.size);
  CHECK(!llm::Tokenizer::open(changed, &message).ok());
  CHECK(std::strstr(message.text(), "version 9") != nullptr);
}

// Two tokenizers, used by two threads, in turns on each: they share caches of words by thread.
void threads_do_not_disturb_each_other(const llm::Tokenizer& one, const llm::Tokenizer& other) {
  const std::string text = "the smallest torch in every cottage";
  const std::vector<int32_t> from_one = encode(one, text), from_other = encode(other, text);
  CHECK(from_one != from_other);
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      CHECK(encode(one, text) == from_one);
      CHECK(encode(other, text) == from_other);
    }
  };
  std::thread thread(work);
  work();
  thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string folder = argv[1];
  const Opened byte_level = open(folder + "/tokenizer_byte_level.table");
  const Opened bpe = open(folder + "/tokenizer_bpe.table");
  const Opened unigram = open(folder + "/tokenizer_unigram.table");
  const Opened word_piece = open(folder + "/tokenizer_word_piece.table");
  const Opened byte_level_2 = open(folder + "/tokenizer_byte_level_2.table");
  const Opened unigram_2 = open(folder + "/tokenizer_unigram_2.table");
  texts_come_back(byte_level.tokenizer);
  checked_and_unchecked_texts_are_one(byte_level.tokenizer);
  special_tokens_are_text_where_they_must(byte_level.tokenizer);
  streams_give_whole_characters(byte_level.tokenizer);
  for (const Opened* opened : {&byte_level, &bpe, &unigram, &byte_level_2, &unigram_2}) {
    long_runs_end(opened->tokenizer);
    huge_texts_leave_small_buffers();
  }
  for (const Opened* opened : {&byte_level, &bpe, &unigram, &word_piece, &unigram_2}) {
    damaged_tables_are_refused(*opened);
  }
  threads_do_not_disturb_each_other(byte_level.tokenizer, unigram.tokenizer);
  return test::check_result();
}
