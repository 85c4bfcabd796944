// What a server does: threads that generate, cancel, fork, rewind, save, restore, embed and score,
// all over one runner with few pages. Each text is what the model gives alone. ThreadSanitizer sees
// what no result shows (make tsan).
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/llm/evaluate/embed.h"
#include "rushlight/llm/evaluate/score.h"
#include "rushlight/llm/grammar/grammar.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr size_t kThreads = 8, kRounds = 12;

FakeOptions characters() {
  FakeOptions fake;
  fake.vocabulary = 128;
  return fake;
}

// One thread's work: a session that is used in every way, beside requests without one.
class Client {
 public:
  Client(Setup* setup, std::shared_ptr<const Grammar> grammar, size_t number)
      : setup_(*setup),
        grammar_(std::move(grammar)),
        number_(number),
        path_("test_runner_threads." + std::to_string(number) + ".session"),
        random_(static_cast<uint32_t>(seed_for(number))),
        session_(setup->runner.new_session()) {}
  ~Client() { std::remove(path_.c_str()); }

  void work() {
    for (size_t round = 0; round < kRounds; ++round) {
      switch (below(7)) {
        case 0:
          request();
          break;
        case 1:
          cancel();
          break;
        case 2:
          fork();
          break;
        case 3:
          save();
          break;
        case 4:
          measure();
          break;
        case 5:
          constrained();
          break;
        default:
          go_on();
      }
    }
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  Tokens prompt(size_t most) {
    return prompt_of(below(4), 1 + below(most), 128);
  }  // some are equal

  void request() {
    const Tokens text = prompt(150);
    CHECK(generate(setup_.runner, text, greedy(20)) == setup_.expected(text, 20));
  }

  // Another thread cancels, at any time.
  void cancel() {
    Message message;
    const Tokens text = prompt(100);
    auto generation = setup_.runner.generate(view(text), greedy(100), &message);
    CHECK(generation.ok());
    if (!generation.ok()) return;
    std::thread canceller([&] { (*generation)->cancel(); });
    const Tokens got = read_all(**generation);
    canceller.join();
    const Tokens wanted = setup_.expected(text, got.size());
    CHECK(got == wanted && (*generation)->status(&message).ok());
    CHECK((*generation)->statistics().output_tokens == got.size());
  }

  void go_on() {
    if (text_.size() > 250) rewind(200);
    const Tokens more = prompt(40);
    text_.insert(text_.end(), more.begin(), more.end());
    go_on(*session_, more);
  }

  void go_on(Session& session, const Tokens& more) {
    Message message;
    auto generation = session.generate(view(more), greedy(10), &message);
    CHECK(generation.ok());
    if (!generation.ok()) return;
    const Tokens wanted = setup_.expected(text_, 10);
    CHECK(read_all(**generation) == wanted);
    if (&session == session_.get()) text_.insert(text_.end(), wanted.begin(), wanted.end());
  }

  void rewind(size_t count) {
    Message message;
    CHECK(session_->rewind(count, &message).ok());
    text_.resize(text_.size() - count);
  }

  void fork() {
    Message message;
    if (text_.empty()) return go_on();
    auto copy = session_->fork(&message);
    CHECK(copy.ok());
    if (copy.ok()) go_on(**copy, {});
  }

  void save() {
    Message message;
    CHECK(session_->save(path_.c_str(), &message).ok());
    auto restored = setup_.runner.restore(path_.c_str(), &message);
    CHECK(restored.ok());
    if (!restored.ok()) return;
    CHECK((*restored)->tokens(&message).value() == text_);
    session_ = std::move(*restored);
    CHECK(session_->cached() <= text_.size());
  }

  void measure() {
    Message message;
    const std::vector<Tokens> texts = {prompt(100), prompt(30)};
    const auto vectors = embed(setup_.runner, {texts.data(), texts.size()}, {}, &message);
    CHECK(vectors.ok() && vectors.value().size() == 2 * FakeModel::kHidden);
    const Tokens text = prompt_of(number_, 90, 128);
    const auto scored = score(setup_.runner.scheduler(), view(text), 3, nullptr, &message);
    CHECK(scored.ok() && scored.value().size() == 89 && scored.value()[88].n_top == 3);
  }

  // The grammar, with the masks that it keeps, is every thread's.
  void constrained() {
    Message message;
    GenerateOptions options = greedy(0);
    options.grammar = grammar_;
    options.n = 2;
    auto generation = setup_.runner.generate(view(prompt(30)), options, &message);
    CHECK(generation.ok());
    if (!generation.ok()) return;
    std::string texts[2];
    Piece piece;
    while ((*generation)->next(&piece)) {
      texts[piece.choice].append(piece.text.data(), piece.text.size());
    }
    for (const std::string& text : texts) CHECK(text.size() == 9 && text.substr(1, 6) == "abcdef");
  }

  Setup& setup_;
  const std::shared_ptr<const Grammar> grammar_;
  const size_t number_;
  const std::string path_;
  std::mt19937 random_;
  std::unique_ptr<Session> session_;
  Tokens text_;  // the session's
};

void test_clients() {
  Setup setup(characters(), 40, 8);
  Message message;
  const auto vocabulary = setup.runner.vocabulary(&message);
  CHECK(vocabulary.ok());
  const auto grammar =
      Grammar::from_regex("(x|y)abcdef[a-z](x|z)", vocabulary.value(), {}, &message);
  CHECK(grammar.ok());
  std::atomic<bool> is_over{false};
  std::thread watcher([&] {  // as /metrics does
    while (!is_over) {
      const Scheduler::Turn turn(setup.runner.scheduler());
      const PagePool& pool = setup.runner.scheduler().pool();
      CHECK(pool.pages() <= pool.capacity());
    }
  });
  std::vector<std::thread> threads;
  for (size_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] { Client(&setup, grammar.value(), k).work(); });
  }
  for (std::thread& thread : threads) thread.join();
  is_over = true;
  watcher.join();
  setup.runner.scheduler().tree().clear();
  CHECK(setup.runner.scheduler().pool().pages() == 0);
}

// Two threads use one session: one text is generated, and the other call is refused.
void test_a_session_of_two_threads() {
  Setup setup;
  for (size_t round = 0; round < 20; ++round) {
    std::unique_ptr<Session> session = setup.runner.new_session();
    const Tokens prompt = prompt_of(round, 70);
    const Tokens wanted = setup.expected(prompt, 5);
    std::atomic<size_t> done{0}, refused{0};
    const auto use = [&] {
      Message message;
      auto generation = session->generate_after(view(prompt), greedy(5), &message);
      if (generation.ok()) {
        CHECK(read_all(**generation) == wanted);
        ++done;
      } else {
        CHECK(generation.status().code() == Code::InvalidState && !message.empty());
        ++refused;
      }
    };
    std::thread other(use);
    use();
    other.join();
    CHECK(done >= 1 && done + refused == 2);
  }
}

}  // namespace

int main() {
  test_a_session_of_two_threads();
  test_clients();
  return check_result();
}
