// Embeddings: what each text gives alone, whatever is computed beside it and in what pieces.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/llm/evaluate/embed.h"
#include "rushlight/llm/evaluate/score.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr size_t kHidden = FakeModel::kHidden;

// What pooling gives for a text, by itself and without pages.
std::vector<float> expected(const FakeOptions& options, const Tokens& tokens) {
  std::vector<float> sum(kHidden);
  size_t count = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_end = i + 1 == tokens.size();
    if (options.pooling == Pooling::Last && !is_end) continue;
    if (options.pooling == Pooling::First && i > 0) continue;
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(i + 1);
    float hidden[kHidden];
    FakeModel::hide(options.is_encoder ? tokens : Tokens(tokens.begin(), end), hidden);
    for (size_t k = 0; k < kHidden; ++k) sum[k] += hidden[k];
    ++count;
  }
  for (float& number : sum) number /= static_cast<float>(count);
  return sum;
}

bool is_near(const float* a, const std::vector<float>& b) {
  for (size_t k = 0; k < kHidden; ++k) {
    if (!(std::fabs(a[k] - b[k]) < 1e-4f)) return false;
  }
  return true;
}

bool says(const Message& message, const char* text) {
  return std::strstr(message.text(), text) != nullptr;
}

std::vector<Tokens> texts_of(std::initializer_list<size_t> lengths) {
  std::vector<Tokens> texts;
  for (const size_t length : lengths) texts.push_back(prompt_of(texts.size() + 1, length));
  return texts;
}

Span<const Tokens> view(const std::vector<Tokens>& texts) { return {texts.data(), texts.size()}; }

void test_pooling(Pooling pooling, bool is_encoder, size_t pages) {
  FakeOptions options;
  options.pooling = pooling;
  options.is_encoder = is_encoder;
  options.batch = is_encoder ? options.context : 64;
  Setup setup(options, pages);
  // Longer than a call, shorter than a page, of one token; not in the order of their lengths.
  const std::vector<Tokens> texts = texts_of({130, 1, 64, 200, 7, 63, 65, 7, 512, 30});
  Message message;
  EmbedOptions plain;
  plain.normalize = false;
  auto result = embed(setup.runner, view(texts), plain, &message);
  CHECK(result.ok());
  if (!result.ok()) return;
  CHECK(result->size() == texts.size() * kHidden);
  for (size_t i = 0; i < texts.size(); ++i) {
    CHECK(is_near(result->data() + i * kHidden, expected(options, texts[i])));
  }
  CHECK(setup.model->rows_total == 1079);        // no row is padding, or computed twice
  CHECK(setup.model->steps < texts.size() * 2);  // short texts share a call
  CHECK(setup.runner.scheduler().pool().pages() == 0);
  auto unit = embed(setup.runner, view(texts), {}, &message);
  CHECK(unit.ok());
  for (size_t i = 0; i < texts.size(); ++i) {
    const float* v = unit->data() + i * kHidden;
    CHECK(std::fabs(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] - 1.0f) < 1e-5f);
  }
}

void test_refusals() {
  Setup setup;
  Message message;
  std::vector<Tokens> texts = texts_of({3, 513});
  CHECK(embed(setup.runner, view(texts), {}, &message).status().code() == Code::InvalidArgument);
  CHECK(says(message, "text 1 has 513 tokens; the model's context has 512"));
  EmbedOptions cut;
  cut.truncate = true;
  cut.normalize = false;
  auto result = embed(setup.runner, view(texts), cut, &message);
  CHECK(result.ok());
  texts[1].pop_back();
  CHECK(is_near(result->data() + kHidden, expected({}, texts[1])));
  texts[0].clear();
  CHECK(embed(setup.runner, view(texts), {}, &message).status().code() == Code::InvalidArgument);
  CHECK(says(message, "text 0 has no tokens"));
  texts[0] = {1, 97};
  CHECK(embed(setup.runner, view(texts), {}, &message).status().code() == Code::InvalidArgument);
  CHECK(says(message, "token 1 of text 0 is 97"));
  CHECK(embed(setup.runner, Span<const Tokens>(), {}, &message)->empty());
}

void test_failures_leave_the_runner_usable() {
  Setup setup({}, 8);
  Message message;
  const std::vector<Tokens> texts = {{1, 2, 5}, {1, 2, 6}};
  setup.model->poison = 6;
  CHECK(embed(setup.runner, view(texts), {}, &message).status().code() == Code::Internal);
  setup.model->poison = -1;
  setup.model->nan_token = 5;
  CHECK(embed(setup.runner, view(texts), {}, &message).status().code() == Code::InvalidState);
  CHECK(says(message, "hidden states for text 0 are NaN"));
  setup.model->nan_token = -1;
  CHECK(embed(setup.runner, view(texts), {}, &message).ok());
  CHECK(setup.runner.scheduler().pool().pages() == 0);
  Setup small({}, 2);  // of 128 tokens
  const std::vector<Tokens> long_text = texts_of({200});
  CHECK(embed(small.runner, view(long_text), {}, &message).status().code() == Code::OutOfResources);
  CHECK(says(message, "text 0, of 200 tokens, has no room in the cache"));
  CHECK(small.runner.scheduler().pool().pages() == 0);
}

void test_an_encoder_does_nothing_else() {
  FakeOptions options;
  options.is_encoder = true;
  options.batch = options.context;
  Setup setup(options);
  Message message;
  const Tokens prompt = {1, 2, 3};
  const auto made = setup.runner.generate(rushlight::test::view(prompt), greedy(4), &message);
  CHECK(made.status().code() == Code::NotSupported);
  CHECK(says(message, "the program is an encoder"));
  CHECK(setup.runner.new_session()->cached() == 0);
}

// A text that another thread generates, while this thread embeds or scores.
class Reader {
 public:
  Reader(Setup& setup, Tokens prompt, size_t count)
      : setup_(setup), prompt_(std::move(prompt)), count_(count) {}
  ~Reader() {
    if (thread_.joinable()) thread_.join();
  }
  void begin() {
    thread_ = std::thread([this] {
      Message message;
      auto made = setup_.runner.generate(rushlight::test::view(prompt_), greedy(count_), &message);
      text_ = read_all(**made);
      is_done = true;
    });
  }
  // Until it needs a step that it does not get.
  void let_wait() const {
    while (!is_done && setup_.runner.scheduler().waiting() == 0) std::this_thread::yield();
  }
  bool is_right() {
    thread_.join();
    return text_ == setup_.expected(prompt_, count_);
  }

  std::atomic<bool> is_done{false};

 private:
  Setup& setup_;
  Tokens prompt_, text_;
  size_t count_;
  std::thread thread_;
};

bool compute(Setup& setup, const Tokens& text, bool scores) {
  Message message;
  if (scores) {
    return score(setup.runner.scheduler(), rushlight::test::view(text), 0, nullptr, &message).ok();
  }
  return embed(setup.runner, {&text, 1}, {}, &message).ok();
}

// Between two calls of the model for a long text, a text that waits gets a step.
void test_other_texts_advance(bool scores) {
  FakeOptions options;
  options.batch = options.wanted = 16;
  Setup setup(options);
  Reader reader(setup, prompt_of(1, 5), 400);
  const std::thread::id here = std::this_thread::get_id();
  size_t calls = 0, passed = 0;
  std::atomic<size_t> steps{0};
  size_t steps_before = 0;
  bool did_wait = false;
  setup.model->before_call = [&] {
    if (std::this_thread::get_id() != here) {
      ++steps;
      return;
    }
    ++calls;
    passed += did_wait && steps == steps_before ? 1 : 0;
    reader.let_wait();
    did_wait = !reader.is_done;
    steps_before = steps;
  };
  reader.begin();
  CHECK(compute(setup, prompt_of(2, 300), scores));
  CHECK(calls == 19 && passed == 0);
  CHECK(steps > 0);
  CHECK(reader.is_right());
}

// A text that lacks pages waits for those that another call holds between its turns.
void test_texts_wait_for_borrowed_pages(bool scores) {
  FakeOptions options;
  options.batch = 100;
  Setup setup(options, 3);
  Reader reader(setup, prompt_of(1, 65), 10);  // which needs two of the three pages
  const std::thread::id here = std::this_thread::get_id();
  bool has_begun = false;
  setup.model->before_call = [&] {
    const bool holds_two = setup.runner.scheduler().pool().pages() == 2;
    if (std::this_thread::get_id() != here || has_begun || !holds_two) return;
    has_begun = true;
    reader.begin();
    reader.let_wait();
  };
  CHECK(compute(setup, prompt_of(2, 120), scores));
  CHECK(has_begun && reader.is_right());
}

// A tokenizer that adds a token to the beginning and two to the end of a text.
class Surrounding final : public TextCodec {
 public:
  Status encode(StringView text, bool add_special, bool, std::vector<int32_t>* tokens,
                Message*) const override {
    if (add_special) tokens->push_back(90);
    for (size_t i = 0; i < text.size(); ++i) tokens->push_back(text.data()[i] - 'a');
    if (add_special) tokens->insert(tokens->end(), {91, 92});
    return {};
  }
  std::string decode(Span<const int32_t>, bool) const override { return {}; }
  StringView piece(int32_t) const override { return {}; }
  int32_t special(StringView) const override { return -1; }
  bool is_special(int32_t token) const override { return token >= 90; }
  size_t vocabulary() const override { return 97; }
};

void test_short_contexts_share_small_calls() {
  FakeOptions options;
  options.is_encoder = true;
  options.context = options.batch = 10;
  Setup setup(options, 0, 4);
  Message message;
  const std::vector<Tokens> texts = texts_of({4, 5, 6, 10, 3});
  CHECK(embed(setup.runner, view(texts), {}, &message).ok());
  CHECK(setup.model->steps == 4);
}

void test_texts_keep_their_ends_when_they_are_cut() {
  FakeOptions options;
  options.context = 8;
  options.batch = 8;
  auto model = std::make_unique<FakeModel>(options);
  Runner runner;
  Message message;
  CHECK(runner.open(std::move(model), std::make_unique<Surrounding>(), {}, &message).ok());
  const StringView texts[] = {StringView("aa", 2), StringView("abcdefghij", 10)};
  CHECK(embed(runner, texts, {}, &message).status().code() == Code::InvalidArgument);
  CHECK(says(message, "text 1 has 13 tokens; the model's context has 8"));
  EmbedOptions cut;
  cut.truncate = true;
  cut.normalize = false;
  auto result = embed(runner, texts, cut, &message);
  CHECK(result.ok());
  CHECK(is_near(result->data(), expected(options, {90, 0, 0, 91, 92})));
  CHECK(is_near(result->data() + kHidden, expected(options, {90, 0, 1, 2, 3, 4, 91, 92})));
}

}  // namespace

int main() {
  for (const Pooling pooling : {Pooling::Last, Pooling::Mean, Pooling::First}) {
    test_pooling(pooling, false, 0);
    test_pooling(pooling, false, 9);  // as many as the longest text needs, and one
    test_pooling(pooling, true, 0);
  }
  test_refusals();
  test_failures_leave_the_runner_usable();
  test_an_encoder_does_nothing_else();
  test_short_contexts_share_small_calls();
  for (const bool scores : {false, true}) {
    test_other_texts_advance(scores);
    test_texts_wait_for_borrowed_pages(scores);
  }
  test_texts_keep_their_ends_when_they_are_cut();
  return check_result();
}
