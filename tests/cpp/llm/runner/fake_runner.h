// A runner with the model of fake_model.h, and what tests do with it.
#pragma once

#include <memory>
#include <vector>

#include "check.h"
#include "fake_model.h"

namespace rushlight::test {

using Tokens = std::vector<int32_t>;

struct Setup {
  explicit Setup(const FakeOptions& options = {}, size_t pages = 0, size_t texts = 0,
                 PageMemory* memory = nullptr)
      : fake(options) {
    auto model = std::make_unique<FakeModel>(options);
    this->model = model.get();
    RunnerOptions runner_options;
    runner_options.scheduler.cache_limit = pages * model->facts().page_bytes;
    runner_options.scheduler.texts = texts;
    runner_options.memory = memory;
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

inline GenerateOptions greedy(size_t count) {
  GenerateOptions options;
  options.sampling.temperature = 0.0f;
  options.max_tokens = count;
  return options;
}

// Every way to change probabilities, together.
inline SamplingOptions all_of_sampling() {
  SamplingOptions options;
  options.logit_bias = {{3, 0.5f}};
  options.repetition_penalty = 1.1f;
  options.presence_penalty = 0.1f;
  options.frequency_penalty = 0.1f;
  options.dry_multiplier = 0.5f;
  options.temperature = 0.8f;
  options.top_k = 40;
  options.top_p = 0.95f;
  options.min_p = 0.01f;
  options.typical_p = 0.9f;
  options.seed = 3;
  options.logprobs = 5;
  return options;
}

inline Tokens prompt_of(uint64_t seed, size_t count, size_t vocabulary = 97) {
  Tokens tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(uniform(seed, 7, i) * static_cast<double>(vocabulary)));
  }
  return tokens;
}

inline Span<const int32_t> view(const Tokens& tokens) { return {tokens.data(), tokens.size()}; }

// All tokens of the first choice.
inline Tokens read_all(Generation& generation) {
  Tokens tokens;
  Piece piece;
  while (generation.next(&piece)) {
    for (const Drawn& drawn : piece.tokens) tokens.push_back(drawn.token);
  }
  return tokens;
}

inline Tokens generate(Runner& runner, const Tokens& prompt, const GenerateOptions& options) {
  Message message;
  auto generation = runner.generate(view(prompt), options, &message);
  CHECK(generation.ok());
  if (!generation.ok()) return {};
  Tokens tokens = read_all(**generation);
  CHECK((*generation)->status(&message).ok());
  return tokens;
}

}  // namespace rushlight::test
