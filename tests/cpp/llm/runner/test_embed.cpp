// Embeddings: what each text gives alone, whatever is computed beside it and in what pieces.
#include <cmath>
#include <cstring>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/llm/runner/embed.h"

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
  int32_t special(StringView) const override { return -1; }
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
  test_texts_keep_their_ends_when_they_are_cut();
  return check_result();
}
