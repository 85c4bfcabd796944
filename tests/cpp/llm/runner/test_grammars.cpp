// Texts under a grammar: how they end, and the tokens that a grammar leaves no choice about.
#include <algorithm>
#include <cmath>
#include <cstring>

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
  test_another_vocabulary();
  return check_result();
}
