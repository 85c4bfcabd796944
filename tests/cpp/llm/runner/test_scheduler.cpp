// Texts that are generated together, with pages enough and too few: each is the text that the model
// gives alone.
#include <random>
#include <thread>

#include "check.h"
#include "fake_model.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

using Tokens = std::vector<int32_t>;

struct Setup {
  explicit Setup(const FakeOptions& options = {}, size_t pages = 0, size_t texts = 32)
      : fake(options) {
    auto model = std::make_unique<FakeModel>(options);
    this->model = model.get();
    RunnerOptions runner_options;
    runner_options.scheduler.cache_limit = pages * model->facts().page_bytes;
    runner_options.scheduler.texts = texts;
    Message message;
    CHECK(runner
              .open(std::move(model), std::make_unique<Characters>(options.vocabulary),
                    runner_options, &message)
              .ok());
  }

  // The text that follows, token by token and without pages.
  Tokens expected(Tokens tokens, size_t count) const {
    const size_t before = tokens.size();
    while (tokens.size() < before + count) tokens.push_back(FakeModel::next_of(fake, tokens));
    return Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(before), tokens.end());
  }

  FakeOptions fake;
  FakeModel* model = nullptr;
  Runner runner;
};

GenerateOptions greedy(size_t count) {
  GenerateOptions options;
  options.sampling.temperature = 0.0f;
  options.max_tokens = count;
  return options;
}

Tokens prompt_of(uint64_t seed, size_t count, size_t vocabulary = 97) {
  Tokens tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(uniform(seed, 7, i) * static_cast<double>(vocabulary)));
  }
  return tokens;
}

Span<const int32_t> view(const Tokens& tokens) { return {tokens.data(), tokens.size()}; }

// All tokens of the first choice.
Tokens read_all(Generation& generation) {
  Tokens tokens;
  Piece piece;
  while (generation.next(&piece)) {
    for (const Drawn& drawn : piece.tokens) tokens.push_back(drawn.token);
  }
  return tokens;
}

Tokens generate(Runner& runner, const Tokens& prompt, const GenerateOptions& options) {
  Message message;
  auto generation = runner.generate(view(prompt), options, &message);
  CHECK(generation.ok());
  if (!generation.ok()) return {};
  Tokens tokens = read_all(**generation);
  CHECK((*generation)->status(&message).ok());
  return tokens;
}

void test_one_text() {
  Setup setup;
  for (const size_t length : {1, 63, 64, 65, 200}) {
    const Tokens prompt = prompt_of(length, length);
    CHECK(generate(setup.runner, prompt, greedy(80)) == setup.expected(prompt, 80));
  }
}

// Requests of all lengths, started at different times, read in turns.
void test_many_texts(size_t pages, size_t texts) {
  Setup setup({}, pages, texts);
  std::minstd_rand engine(seed_for(pages * 100 + texts));
  const auto below = [&](size_t n) { return static_cast<size_t>(engine()) % n; };
  std::vector<Tokens> prompts, results;
  std::vector<std::unique_ptr<Generation>> generations;
  Message message;
  for (uint64_t i = 0; i < 20; ++i) {
    prompts.push_back(prompt_of(i % 5, 1 + below(150)));  // some begin alike
    auto generation = setup.runner.generate(view(prompts.back()), greedy(30 + i * 5), &message);
    CHECK(generation.ok());
    generations.push_back(std::move(*generation));
    results.emplace_back();
    for (size_t reads = below(20); reads > 0; --reads) {
      const size_t k = below(generations.size());
      Piece piece;
      if (!generations[k]->next(&piece)) continue;
      for (const Drawn& drawn : piece.tokens) results[k].push_back(drawn.token);
    }
  }
  for (size_t k = 0; k < generations.size(); ++k) {
    for (const int32_t token : read_all(*generations[k])) results[k].push_back(token);
    CHECK(results[k] == setup.expected(prompts[k], 30 + k * 5));
    CHECK(generations[k]->status(&message).ok());
    if (!generations[k]->status(&message).ok()) std::printf("%s\n", message.text());
  }
  generations.clear();
  CHECK(setup.runner.scheduler().pool().pages() == setup.runner.scheduler().tree().pages());
  setup.runner.scheduler().tree().clear();
  CHECK(setup.runner.scheduler().pool().pages() == 0);
}

void test_threads() {
  Setup setup({}, 20, 8);
  std::vector<std::thread> threads;
  std::vector<Tokens> results(8);
  for (size_t k = 0; k < results.size(); ++k) {
    threads.emplace_back(
        [&, k] { results[k] = generate(setup.runner, prompt_of(k, 20 * k + 1), greedy(60)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t k = 0; k < results.size(); ++k) {
    CHECK(results[k] == setup.expected(prompt_of(k, 20 * k + 1), 60));
  }
}

}  // namespace

int main() {
  test_one_text();
  test_many_texts(0, 32);
  test_many_texts(0, 3);
  test_many_texts(24, 32);
  test_many_texts(7, 4);
  test_threads();
  return check_result();
}
