// Texts that are generated together, with pages enough and too few: each is the text that the model
// gives alone.
#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "check.h"
#include "fake_runner.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

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

// A long prompt is read in between the tokens of the others, which do not wait for its end.
void test_prompts_come_in_pieces() {
  Setup setup;
  Message message;
  const Tokens shorter = prompt_of(1, 5), longer = prompt_of(2, 400);
  auto first = setup.runner.generate(view(shorter), greedy(60), &message);
  Piece piece;
  CHECK((*first)->next(&piece));
  auto second = setup.runner.generate(view(longer), greedy(10), &message);
  const size_t steps = setup.model->steps;
  for (int i = 0; i < 10; ++i) CHECK((*first)->next(&piece) && piece.tokens.size() > 0);
  CHECK(setup.model->steps <= steps + 10);  // none was spent on the prompt alone
  CHECK(setup.model->most_rows <= setup.fake.batch);
  CHECK(read_all(**second) == setup.expected(longer, 10));
  CHECK((*second)->statistics().prompt_tokens == 400);
}

void test_cancel() {
  Setup setup;
  Message message;
  auto one = setup.runner.generate(view(prompt_of(1, 5)), greedy(300), &message);
  auto other = setup.runner.generate(view(prompt_of(2, 5)), greedy(40), &message);
  Piece piece;
  CHECK((*one)->next(&piece));
  (*one)->cancel();
  size_t tokens = 0;
  while ((*one)->next(&piece)) tokens += piece.tokens.size();
  CHECK(tokens <= 1 && piece.finish == Finish::Cancelled);
  CHECK(read_all(**other) == setup.expected(prompt_of(2, 5), 40));
  // One that waits in the queue, and one that nobody reads to its end.
  Setup narrow({}, 0, 1);
  auto running = narrow.runner.generate(view(prompt_of(3, 5)), greedy(10), &message);
  auto waiting = narrow.runner.generate(view(prompt_of(4, 5)), greedy(10), &message);
  CHECK((*running)->next(&piece));
  waiting->reset();
  running->reset();
  CHECK(generate(narrow.runner, prompt_of(5, 5), greedy(10)) ==
        narrow.expected(prompt_of(5, 5), 10));
}

// A reader that stops in the middle holds up nobody, though it has the only place.
void test_a_reader_that_stops() {
  Setup setup({}, 8, 1);
  Message message;
  auto idle = setup.runner.generate(view(prompt_of(1, 100)), greedy(200), &message);
  Piece piece;
  CHECK((*idle)->next(&piece));
  Tokens tokens;
  for (const Drawn& drawn : piece.tokens) tokens.push_back(drawn.token);
  CHECK(generate(setup.runner, prompt_of(2, 300), greedy(100)) ==
        setup.expected(prompt_of(2, 300), 100));
  for (const int32_t token : read_all(**idle)) tokens.push_back(token);
  CHECK(tokens == setup.expected(prompt_of(1, 100), 200));
}

// A reader that stops gives its place to a text that waits, though another one goes on.
void test_a_place_that_is_given_up() {
  Setup setup({}, 0, 2);
  Message message;
  auto idle = setup.runner.generate(view(prompt_of(1, 5)), greedy(100), &message);
  auto busy = setup.runner.generate(view(prompt_of(2, 5)), greedy(300), &message);
  auto waiting = setup.runner.generate(view(prompt_of(3, 5)), greedy(10), &message);
  Piece piece;
  size_t tokens = 0;
  while (tokens < 200 && (*busy)->next(&piece)) tokens += piece.tokens.size();
  CHECK((*waiting)->statistics().output_tokens == 10);
  CHECK(read_all(**waiting) == setup.expected(prompt_of(3, 5), 10));
  CHECK(read_all(**idle) == setup.expected(prompt_of(1, 5), 100));
  CHECK((*idle)->statistics().recomputed_tokens == 0);  // it kept its pages
}

// What fails for one of several fails for it alone.
void test_errors_in_one_of_several() {
  Setup setup;
  Message message;
  setup.model->poison = 96;
  setup.model->nan_token = 95;
  const Tokens good = prompt_of(1, 30, 90);
  Tokens poisoned = good, strange = good;
  poisoned.push_back(96);
  strange.push_back(95);
  auto a = setup.runner.generate(view(good), greedy(20), &message);
  auto b = setup.runner.generate(view(poisoned), greedy(20), &message);
  auto c = setup.runner.generate(view(strange), greedy(20), &message);
  const Tokens wanted = setup.expected(good, 20);
  const bool clean = std::find_if(wanted.begin(), wanted.end(),
                                  [](int32_t token) { return token >= 95; }) == wanted.end();
  CHECK(clean);  // or choose another prompt
  CHECK(read_all(**a) == wanted && (*a)->status(&message).ok());
  CHECK(read_all(**b).empty() && (*b)->status(&message).code() == Code::Internal);
  CHECK(std::strstr(message.text(), "poisoned") != nullptr);
  CHECK(read_all(**c).empty() && (*c)->status(&message).code() == Code::InvalidState);
  CHECK(std::strstr(message.text(), "NaN") != nullptr);
  CHECK(generate(setup.runner, good, greedy(20)) == wanted);
}

void test_limits() {
  Setup setup({}, 3, 4);
  Message message;
  CHECK(setup.runner.generate(view(prompt_of(1, 192)), greedy(1), &message).status().code() ==
        Code::OutOfResources);
  CHECK(std::strstr(message.text(), "cache_limit") != nullptr);
  auto full = setup.runner.generate(view(prompt_of(1, 180)), greedy(100), &message);
  CHECK(full.ok() && read_all(**full) == setup.expected(prompt_of(1, 180), 13));
  CHECK((*full)->status(&message).code() == Code::OutOfResources);
  CHECK(setup.runner.generate({}, greedy(1), &message).status().code() == Code::InvalidArgument);
  CHECK(generate(setup.runner, prompt_of(4, 20), greedy(20)) ==
        setup.expected(prompt_of(4, 20), 20));
}

// Memory of the caller that ends before the limit of the cache.
class FewPages final : public PageMemory {
 public:
  explicit FewPages(size_t pages) : left_(pages) {}
  void* allocate(size_t bytes) override {
    if (left_ == 0) return nullptr;
    --left_;
    return heap_pages().allocate(bytes);
  }
  void free(void* memory, size_t bytes) override {
    ++left_;
    heap_pages().free(memory, bytes);
  }

 private:
  size_t left_;
};

void test_memory_of_the_caller_ends() {
  FewPages memory(3);
  Setup setup({}, 50, 8, &memory);
  std::vector<std::unique_ptr<Generation>> generations;
  Message message;
  for (uint64_t i = 0; i < 5; ++i) {
    generations.push_back(
        std::move(*setup.runner.generate(view(prompt_of(i, 50)), greedy(60), &message)));
  }
  for (uint64_t i = 0; i < 5; ++i) {
    CHECK(read_all(*generations[i]) == setup.expected(prompt_of(i, 50), 60));
  }
  auto full = setup.runner.generate(view(prompt_of(1, 180)), greedy(100), &message);
  CHECK(full.ok() && read_all(**full) == setup.expected(prompt_of(1, 180), 13));
  CHECK((*full)->status(&message).code() == Code::MemoryAllocationFailed);
  CHECK(std::strstr(message.text(), "there is no more memory, and 3 pages") != nullptr);
  CHECK(generate(setup.runner, prompt_of(4, 20), greedy(20)) ==
        setup.expected(prompt_of(4, 20), 20));
}

void test_several_texts_of_a_prompt() {
  Setup setup;
  Message message;
  GenerateOptions options = greedy(12);
  options.sampling.temperature = 1.0f;
  options.sampling.seed = 5;
  options.n = 3;
  const Tokens prompt = prompt_of(1, 100);
  auto generation = setup.runner.generate(view(prompt), options, &message);
  Tokens texts[3];
  Piece piece;
  while ((*generation)->next(&piece)) {
    for (const Drawn& drawn : piece.tokens) texts[piece.choice].push_back(drawn.token);
  }
  CHECK(texts[0].size() == 12 && texts[0] != texts[1] && texts[1] != texts[2]);
  CHECK((*generation)->statistics().reused_tokens == 2 * 99);  // computed once
  options.n = 1;
  CHECK(generate(setup.runner, prompt, options) == texts[0]);
}

// As many texts at once as a step has rows; more are refused.
void test_texts_at_once() {
  FakeOptions fake;
  fake.wanted = 5;
  Setup setup(fake, 0, 0);
  Message message;
  std::vector<std::unique_ptr<Generation>> generations;
  for (uint64_t i = 0; i < 7; ++i) {
    generations.push_back(
        std::move(*setup.runner.generate(view(prompt_of(i, 3)), greedy(10), &message)));
  }
  for (uint64_t i = 0; i < 7; ++i) {
    CHECK(read_all(*generations[i]) == setup.expected(prompt_of(i, 3), 10));
  }
  Runner runner;
  RunnerOptions options;
  options.scheduler.texts = 6;
  CHECK(runner.open(std::make_unique<FakeModel>(fake), nullptr, options, &message).code() ==
        Code::InvalidArgument);
  CHECK(std::strstr(message.text(), "texts is 6") && std::strstr(message.text(), "at most 5"));
}

// Whoever reads may stop to wait between two steps of a long prompt, and wait again later.
void test_a_wait_that_is_given_up() {
  FakeOptions fake;
  fake.batch = 16;
  Setup setup(fake);
  Message message;
  const Tokens prompt = prompt_of(1, 150);
  auto generation = setup.runner.generate(view(prompt), greedy(5), &message);
  size_t asked = 0;
  Piece piece;
  while ((*generation)->next(&piece, [&] { return ++asked % 2 == 0; }) && piece.tokens.empty()) {
    CHECK(piece.text.empty() && piece.finish == Finish::None);
    CHECK(setup.model->steps == asked && asked % 2 == 1);
  }
  CHECK(asked == 150 / 16 && piece.tokens.size() == 1);
  Tokens text = {piece.tokens[0].token};
  for (const int32_t token : read_all(**generation)) text.push_back(token);
  CHECK(text == setup.expected(prompt, 5));
}

// A text that is cancelled before anybody reads it has no tokens, and leaves its session usable.
void test_cancel_before_the_first_token() {
  Setup setup;
  Message message;
  const Tokens prompt = prompt_of(1, 100);
  std::unique_ptr<Session> session = setup.runner.new_session();
  auto generation = session->generate(view(prompt), greedy(20), &message);
  (*generation)->cancel();
  Piece piece;
  CHECK((*generation)->next(&piece) && piece.tokens.empty() && piece.finish == Finish::Cancelled);
  CHECK(!(*generation)->next(&piece) && (*generation)->status(&message).ok());
  CHECK(setup.model->steps == 0 && session->tokens(&message).value() == prompt);
  generation = session->generate({}, greedy(20), &message);
  CHECK(generation.ok() && read_all(**generation) == setup.expected(prompt, 20));
}

}  // namespace

int main() {
  test_prompts_come_in_pieces();
  test_cancel();
  test_cancel_before_the_first_token();
  test_a_wait_that_is_given_up();
  test_a_reader_that_stops();
  test_a_place_that_is_given_up();
  test_errors_in_one_of_several();
  test_limits();
  test_memory_of_the_caller_ends();
  test_several_texts_of_a_prompt();
  test_texts_at_once();
  test_one_text();
  test_many_texts(0, 32);
  test_many_texts(0, 3);
  test_many_texts(24, 32);
  test_many_texts(7, 4);
  test_threads();
  return check_result();
}
