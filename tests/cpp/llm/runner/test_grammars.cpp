// Texts under a grammar: how they end, and the tokens that a grammar leaves no choice about.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/llm/grammar/grammar.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

FakeOptions characters() {
  FakeOptions fake;
  fake.vocabulary = 128;
  return fake;
}

std::shared_ptr<const Grammar> grammar_of(Runner& runner, const char* pattern) {
  Message message;
  auto vocabulary = runner.vocabulary(&message);
  CHECK(vocabulary.ok());
  auto grammar = Grammar::from_regex(pattern, *vocabulary, {}, &message);
  CHECK(grammar.ok());
  return *grammar;
}

// All that was drawn for a prompt.
std::vector<Drawn> drawn_for(Setup& setup, const Tokens& prompt, const GenerateOptions& options) {
  Message message;
  auto generation = setup.runner.generate(view(prompt), options, &message);
  CHECK(generation.ok());
  std::vector<Drawn> all;
  if (!generation.ok()) return all;
  Piece piece;
  while ((*generation)->next(&piece))
    all.insert(all.end(), piece.tokens.begin(), piece.tokens.end());
  CHECK((*generation)->status(&message).ok());
  CHECK(piece.finish == Finish::Stop);
  return all;
}

// An end token ends a text under a grammar, although end tokens are to be ignored otherwise.
void test_the_end_of_a_text() {
  Setup setup(characters());
  setup.runner.set_ends({0});
  GenerateOptions options = greedy(50);
  options.grammar = grammar_of(setup.runner, "a*");
  options.ignore_eos = true;
  CHECK(drawn_for(setup, prompt_of(1, 5), options).size() < 50);
  options.sampling.logit_bias = {{0, 100.0f}};
  CHECK(drawn_for(setup, prompt_of(1, 5), options).empty());
}

// The log probability of a token after others, by the model alone.
float logprob_of(const FakeOptions& fake, const Tokens& text, int32_t token) {
  std::vector<float> logits(fake.vocabulary);
  FakeModel::fill(fake, text, logits.data());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return logits[static_cast<size_t>(token)] - static_cast<float>(std::log(sum));
}

// Tokens that must come next have log probabilities, too, and the text is the same with them.
void test_log_probabilities(size_t guesses) {
  Setup setup(characters());
  GenerateOptions options = greedy(0);
  options.grammar = grammar_of(setup.runner, "(x|y)abcdef(x|y|z)abcabc[a-z]abc");
  options.guesses = guesses;
  const Tokens prompt = prompt_of(3, 20);
  const size_t before = setup.model->steps;
  const std::vector<Drawn> plain = drawn_for(setup, prompt, options);
  CHECK(setup.model->steps - before <= 3);  // what is forced is not decoded
  options.sampling.logprobs = 2;
  const std::vector<Drawn> measured = drawn_for(setup, prompt, options);
  CHECK(plain.size() == 18 && measured.size() == 18);
  Tokens text = prompt;
  for (size_t i = 0; i < std::min(plain.size(), measured.size()); ++i) {
    CHECK(plain[i].token == measured[i].token && plain[i].logprob == 0.0f);
    const float wanted = logprob_of(setup.fake, text, measured[i].token);
    CHECK(std::fabs(measured[i].logprob - wanted) < 1e-4f);
    CHECK(measured[i].n_top == 2 &&
          measured[i].top[0].token == FakeModel::next_of(setup.fake, text));
    text.push_back(measured[i].token);
  }
}

// How often the model is run for a text under a grammar, and the tokens of all texts.
size_t steps_for(Setup& setup, const char* pattern, GenerateOptions options, size_t texts = 1,
                 size_t prompt = 20) {
  options.grammar = grammar_of(setup.runner, pattern);
  const size_t before = setup.model->steps;
  std::vector<std::unique_ptr<Generation>> generations;
  Message message;
  for (size_t i = 0; i < texts; ++i) {
    const Tokens tokens = prompt_of(50 + i, prompt);
    auto generation = setup.runner.generate(view(tokens), options, &message);
    CHECK(generation.ok());
    if (generation.ok()) generations.push_back(std::move(*generation));
  }
  for (auto& generation : generations) {
    Piece piece;
    while (generation->next(&piece)) continue;
    CHECK(generation->status(&message).ok() && piece.finish == Finish::Stop);
  }
  return setup.model->steps - before;
}

// The model runs once for each choice that a grammar leaves, and not for the tokens between.
void test_forced_tokens(size_t guesses) {
  GenerateOptions options = greedy(0);
  options.guesses = guesses;
  struct {
    const char* pattern;
    size_t choices;
  } const kTexts[] = {
      {"abc", 0},                                                       // no choice
      {"abcdefghijklmnopqrstuvwxyz(x|y)", 1},                           // at the end
      {"(x|y)abcdefghijklmnopqrstuvwxyz", 1},                           // at the beginning
      {"ab(c|d)ef(g|h)ij", 2},                                          // between
      {"<call>(f|g)\\(x=(1|2), y=(3|4)\\)</call>", 3},                  // as tools are called
      {"(a|b)cdefghijklmnopqrstuvwxyz(c|d)efghijklmnopqrstuvwxyz", 2},  // more than a prompt's rest
  };
  for (const auto& text : kTexts) {
    for (const size_t texts : {size_t{1}, size_t{4}}) {
      Setup setup(characters());
      // Texts of a batch share their steps; those of a prompt before the first choice are its own.
      const size_t steps = steps_for(setup, text.pattern, options, texts);
      std::printf("%s: %zu texts, %zu guesses: %zu steps\n", text.pattern, texts, guesses, steps);
      CHECK(texts == 1 ? steps == text.choices : steps <= text.choices + 3);
      CHECK(setup.model->rows_total < texts * 100);
    }
  }
}

// What is forced first is read in with the prompt: the text is the same, and so is what a second
// text finds of its prompt.
void test_forced_first() {
  Setup setup(characters());
  GenerateOptions options = greedy(0);
  options.grammar = grammar_of(setup.runner, "abc(x|y|z)abc");
  const Tokens prompt = prompt_of(3, 40);
  Message message;
  for (const bool again : {false, true}) {
    auto generation = setup.runner.generate(view(prompt), options, &message);
    CHECK(generation.ok());
    const Tokens text = read_all(**generation);
    Tokens before = prompt;
    before.insert(before.end(), {'a', 'b', 'c'});
    std::vector<float> logits(setup.fake.vocabulary);
    FakeModel::fill(setup.fake, before, logits.data());
    const auto best = std::max_element(logits.begin() + 'x', logits.begin() + 'z' + 1);
    CHECK(text ==
          Tokens({'a', 'b', 'c', static_cast<int32_t>(best - logits.begin()), 'a', 'b', 'c'}));
    const Statistics figures = (*generation)->statistics();
    CHECK(figures.steps == 1 && figures.output_tokens == 7 && figures.prompt_tokens == 40);
    CHECK((figures.reused_tokens > 0) == again && figures.reused_tokens <= 40);
    CHECK(figures.first_token_ns >= figures.started_ns && figures.first_token_ns > 0);
  }
  options.max_tokens = 2;  // which are forced
  CHECK(generate(setup.runner, prompt, options) == Tokens({'a', 'b'}));
}

// A grammar over another vocabulary of the same size is refused.
void test_another_vocabulary() {
  Setup setup(characters()), other(characters());
  GenerateOptions options = greedy(5);
  options.grammar = grammar_of(other.runner, "a*");
  Message message;
  CHECK(setup.runner.generate(view(prompt_of(1, 5)), options, &message).status().code() ==
        Code::InvalidArgument);
  CHECK(std::strstr(message.text(), "the runner's own vocabulary") != nullptr);
  options.grammar = grammar_of(setup.runner, "a*");
  CHECK(setup.runner.generate(view(prompt_of(1, 5)), options, &message).ok());
}

}  // namespace

int main() {
  test_the_end_of_a_text();
  test_log_probabilities(0);
  test_log_probabilities(8);
  for (const size_t guesses : {size_t{0}, size_t{8}}) test_forced_tokens(guesses);
  test_forced_first();
  test_another_vocabulary();
  return check_result();
}
