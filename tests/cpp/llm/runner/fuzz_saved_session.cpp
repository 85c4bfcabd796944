// Damaged files of sessions, with digests that are right again: refused, or a text that goes on,
// but nothing worse. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_saved_session ROUNDS: prints how many damaged files were restored.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/core/digest.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

const char* const kPath = "fuzz_saved_session.session";
constexpr size_t kHeader = 72;
constexpr size_t kTokens = 16, kCached = 24, kPageBytes = 32, kDigest = 64;  // in the header

uint64_t number_at(const std::vector<uint8_t>& file, size_t at) {
  uint64_t number;
  std::memcpy(&number, &file[at], sizeof(number));
  return number;
}

std::vector<uint8_t> read_file() {
  std::vector<uint8_t> bytes(1 << 20);
  std::FILE* file = std::fopen(kPath, "rb");
  CHECK(file != nullptr);
  if (file == nullptr) return {};
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

void write_file(const std::vector<uint8_t>& bytes) {
  std::FILE* file = std::fopen(kPath, "wb");
  CHECK(file != nullptr);
  if (file == nullptr) return;
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
}

// Makes the digest that of the header, the tokens and the pages, as far as there are some.
void repair(std::vector<uint8_t>* file) {
  if (file->size() < kHeader) return;
  std::memset(file->data() + kDigest, 0, 8);
  uint64_t digest = extend_digest(0, {file->data(), kHeader});
  size_t at = kHeader;
  const auto add = [&](uint64_t bytes) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(bytes, file->size() - at));
    digest = extend_digest(digest, {file->data() + at, size});
    at += size;
  };
  add(number_at(*file, kTokens) * sizeof(int32_t));
  const uint64_t page = number_at(*file, kPageBytes);
  while (at < file->size() && page > 0) add(page);
  std::memcpy(file->data() + kDigest, &digest, 8);
}

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  void operator()(std::vector<uint8_t>* file) {
    for (size_t n = 1 + below(3); n > 0; --n) {
      const size_t way = below(8);
      if (way == 0) {
        file->resize(below(file->size() + 300));
      } else if (way < 4) {
        put(file, way < 2 ? kTokens : kCached, 8);
      } else if (way == 4) {
        put(file, below(kHeader / 4) * 4, 4);
      } else {
        put(file, kHeader + below(250) * 4, 4);
      }
    }
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  void put(std::vector<uint8_t>* file, size_t at, size_t width) {
    static constexpr uint64_t kNumbers[] = {0,   1,   63,  64,         65,         96,    97,  199,
                                            200, 218, 219, 0x7FFFFFFF, 0x80000000, ~0ull, 512, 513};
    const uint64_t number = kNumbers[below(sizeof kNumbers / sizeof kNumbers[0])];
    if (at + width <= file->size()) std::memcpy(file->data() + at, &number, width);
  }

  std::mt19937 random_;
};

// Whatever the text is, it is used in every way.
void use(Runner& runner, Session& session) {
  Message message;
  const size_t size = session.tokens(&message)->size();
  CHECK(session.cached() <= size && size <= runner.facts().context);
  auto fork = session.fork(&message);
  CHECK(fork.ok());
  GenerateOptions options = greedy(3);
  options.sampling.repetition_penalty = 1.1f;
  options.context_full = ContextFull::Shift;
  const Tokens more = {5, 6};
  auto generation = (*fork)->generate(view(more), options, &message);
  CHECK(generation.ok());
  if (generation.ok()) CHECK(read_all(**generation).size() == 3);
  CHECK(session.rewind(size / 2, &message).ok());
  CHECK(session.save(kPath, &message).ok());
  CHECK(runner.restore(kPath, &message).ok());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  Setup setup;
  Message message;
  std::vector<uint8_t> good;
  {
    std::unique_ptr<Session> session = setup.runner.new_session();
    auto generation = session->generate(view(prompt_of(1, 200)), greedy(20), &message);
    read_all(**generation);
    CHECK(session->save(kPath, &message).ok());
    good = read_file();
  }
  Damage damage(seed_for(1));
  int restored_count = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint8_t> file = good;
    if (round > 0) damage(&file);
    repair(&file);
    write_file(file);
    Message why;
    Setup with_few_pages({}, 6);
    Runner& runner = round % 2 == 0 ? setup.runner : with_few_pages.runner;
    auto restored = runner.restore(kPath, &why);
    CHECK(restored.ok() || !why.empty());
    CHECK(restored.ok() || round > 0);
    if (!restored.ok()) continue;
    ++restored_count;
    use(runner, **restored);
  }
  CHECK(rounds < 100 || restored_count > rounds / 20);
  std::printf("%d of %d restored\n", restored_count, rounds);
  std::remove(kPath);
  return check_result();
}
