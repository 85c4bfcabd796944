// While texts are decoded nothing is allocated but pages, which come from the caller's memory.
#include <cstdio>

#include "../adapters/adapter_files.h"
#include "check.h"
#include "count_allocations.h"
#include "fake_runner.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// Pages in an array of the caller.
class CallersPages final : public PageMemory {
 public:
  void* allocate(size_t) override {
    for (size_t i = 0; i < kPages; ++i) {
      if (is_taken_[i]) continue;
      is_taken_[i] = true;
      ++taken;
      return pages_[i];
    }
    return nullptr;
  }
  void free(void* memory, size_t) override {
    for (size_t i = 0; i < kPages; ++i) {
      if (pages_[i] != memory) continue;
      CHECK(is_taken_[i]);
      is_taken_[i] = false;
      --taken;
    }
  }
  size_t taken = 0;

 private:
  static constexpr size_t kPages = 64;
  alignas(64) uint8_t pages_[kPages][64 + kPageTokens * sizeof(int32_t)];
  bool is_taken_[kPages] = {};
};

CallersPages g_pages;

// The fake model allocates what it reads, which is not the runner's.
class UncountedModel final : public StepModel {
 public:
  explicit UncountedModel(const FakeOptions& options) : model_(options) {}
  const ModelFacts& facts() const override { return model_.facts(); }
  uint64_t digest() override { return 0; }
  Result<Span<float>> step(const StepRows& rows, Message* message) override {
    const size_t before = g_allocations;
    Result<Span<float>> logits = model_.step(rows, message);
    g_allocations = before;
    return logits;
  }
  Result<Span<float>> embed(const StepRows& rows, Message* message) override {
    return model_.embed(rows, message);
  }

 private:
  FakeModel model_;
};

void test_decoding() {
  FakeOptions fake;
  fake.adapters = adapter_facts();
  const AdapterFile file(adapter_entries(4));
  Runner runner;
  RunnerOptions options;
  options.memory = &g_pages;
  options.scheduler.cache_limit = 64 * kPageTokens * sizeof(int32_t);
  Message message;
  CHECK(runner
            .open(std::make_unique<UncountedModel>(fake),
                  std::make_unique<Characters>(fake.vocabulary), options, &message)
            .ok());
  GenerateOptions generate;
  generate.sampling = all_of_sampling();
  generate.ignore_eos = true;
  generate.stop = {"never seen", "nor this"};
  auto adapter = Adapter::read(file.bytes(), runner.facts().adapters, &message);
  CHECK(adapter.ok());
  std::vector<std::unique_ptr<Generation>> generations;
  Piece piece;
  for (uint64_t i = 0; i < 4; ++i) {
    const Tokens prompt = prompt_of(i, 30 + 20 * i);
    generate.adapter = i % 2 == 0 ? nullptr : adapter.value();
    auto generation = runner.generate(view(prompt), generate, &message);
    CHECK(generation.ok());
    generations.push_back(std::move(*generation));
    CHECK(generations.back()->next(&piece));
  }
  const size_t pages = g_pages.taken;
  g_allocations = 0;
  size_t tokens = 0;
  for (int round = 0; round < 150; ++round) {
    for (const auto& generation : generations) {
      CHECK(generation->next(&piece));
      tokens += piece.tokens.size();
    }
  }
  if (g_allocations > 0) std::fprintf(stderr, "%zu allocations\n", g_allocations.load());
  CHECK(g_allocations == 0);
  CHECK(tokens >= 600 && g_pages.taken >= pages + 8);  // memory follows the length
  generations.clear();
}

}  // namespace

int main() {
  test_decoding();
  CHECK(g_pages.taken == 0);
  return check_result();
}
