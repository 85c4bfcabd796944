// A model for tests of the scheduler and of sessions. It stores its tokens in the pages, as an
// attention stores keys, and its logits depend on every token that it finds there: a page that is
// shared, copied or reused wrongly gives another text. next_of() is the same without pages.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rushlight/llm/runner/runner.h"
#include "rushlight/llm/sampling/random.h"

namespace rushlight::test {

using namespace rushlight::llm;

struct FakeOptions {
  size_t vocabulary = 97;
  size_t context = 512;
  size_t batch = 64;
  size_t wanted = 32;
  size_t memory = 0;    // tokens that the next one depends on; 0: all
  float spread = 3.0f;  // of logits
  bool is_encoder = false;
  Pooling pooling = Pooling::Last;
  AdapterFacts adapters;
};

class FakeModel final : public StepModel {
 public:
  explicit FakeModel(const FakeOptions& options) : options_(options) {
    facts_.vocabulary = options.vocabulary;
    facts_.context = options.context;
    facts_.batch = options.batch;
    facts_.wanted = options.wanted;
    facts_.hidden = kHidden;
    facts_.pooling = options.pooling;
    facts_.is_encoder = options.is_encoder;
    facts_.adapters = options.adapters;
    if (!options.is_encoder) {
      facts_.cache = {DType::Float32, 1, 1, 1, 1};
      facts_.page_bytes = kPageTokens * sizeof(int32_t);
    }
    logits_.resize(options.wanted * options.vocabulary);
    hidden_.resize(options.batch * kHidden);
  }

  const ModelFacts& facts() const override { return facts_; }
  uint64_t digest() override { return 42; }

  Result<Span<float>> step(const StepRows& rows, Message* message) override {
    if (before_call) before_call();
    ++steps;
    most_rows = rows.tokens.size() > most_rows ? rows.tokens.size() : most_rows;
    rows_total += rows.tokens.size();
    for (size_t i = 0; i < rows.tokens.size(); ++i) {
      if (rows.tokens[i] == poison) return message->fail(Code::Internal, "the poisoned token");
      store(rows, i);
    }
    for (size_t k = 0; k < rows.wanted.size(); ++k) {
      const auto row = static_cast<size_t>(rows.wanted[k]);
      const std::vector<int32_t> tokens = read(rows, row);
      fill(options_, tokens, logits_.data() + k * options_.vocabulary);
      if (rows.tokens[row] == nan_token) {
        logits_[k * options_.vocabulary] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    return Span<float>(logits_.data(), rows.wanted.size() * options_.vocabulary);
  }

  static constexpr size_t kHidden = 3;

  // The hidden state of a token is made of all tokens up to it, in an encoder of the whole text.
  Result<Span<float>> embed(const StepRows& rows, Message* message) override {
    if (before_call) before_call();
    ++steps;
    rows_total += rows.tokens.size();
    if (rows.tokens.size() > options_.batch) return message->fail(Code::Internal, "too many rows");
    for (size_t i = 0; i < rows.tokens.size(); ++i) {
      if (rows.tokens[i] == poison) return message->fail(Code::Internal, "the poisoned token");
      if (!options_.is_encoder) store(rows, i);
    }
    for (size_t k = 0; k < rows.wanted.size(); ++k) {
      const auto row = static_cast<size_t>(rows.wanted[k]);
      float* hidden = hidden_.data() + k * kHidden;
      hide(options_.is_encoder ? whole(rows, row) : read(rows, row), hidden);
      if (rows.tokens[row] == nan_token) hidden[0] = std::numeric_limits<float>::quiet_NaN();
    }
    return Span<float>(hidden_.data(), rows.wanted.size() * kHidden);
  }

  // What is added to the tokens that it stores: another number for each rank.
  static int32_t of_adapter(const AdapterWeights* adapter) {
    return adapter == nullptr ? 0 : 1000 * static_cast<int32_t>(adapter->sites[0].rank);
  }

  static void hide(const std::vector<int32_t>& tokens, float* hidden) {
    FakeOptions options;
    options.vocabulary = kHidden;
    fill(options, tokens, hidden);
  }

  static void fill(const FakeOptions& options, const std::vector<int32_t>& tokens, float* logits) {
    size_t begin = 0;
    if (options.memory > 0 && tokens.size() > options.memory)
      begin = tokens.size() - options.memory;
    uint64_t hash = 1469598103934665603u;
    for (size_t i = begin; i < tokens.size(); ++i) {
      hash = (hash ^ static_cast<uint64_t>(tokens[i] + 1)) * 1099511628211u;
    }
    for (size_t t = 0; t < options.vocabulary; ++t) {
      logits[t] = options.spread * static_cast<float>(uniform(hash, 0, t));
    }
  }

  static int32_t next_of(const FakeOptions& options, const std::vector<int32_t>& tokens) {
    std::vector<float> logits(options.vocabulary);
    fill(options, tokens, logits.data());
    size_t best = 0;
    for (size_t t = 1; t < logits.size(); ++t) best = logits[t] > logits[best] ? t : best;
    return static_cast<int32_t>(best);
  }

  size_t steps = 0;
  size_t most_rows = 0;
  size_t rows_total = 0;
  int32_t poison = -1;     // a step with this token fails
  int32_t nan_token = -1;  // after it a logit is NaN
  std::function<void()> before_call;

 private:
  void store(const StepRows& rows, size_t i) {
    const KvSequence& table = rows.tables[static_cast<size_t>(rows.sequences[i])];
    const auto position = static_cast<size_t>(rows.positions[i]);
    const auto token = static_cast<int32_t>(rows.tokens[i]) + of_adapter(table.adapter);
    uint8_t* page = table.pages[position / kPageTokens];
    std::memcpy(page + position % kPageTokens * sizeof(token), &token, sizeof(token));
  }

  std::vector<int32_t> read(const StepRows& rows, size_t row) {
    const KvSequence& table = rows.tables[static_cast<size_t>(rows.sequences[row])];
    std::vector<int32_t> tokens(static_cast<size_t>(rows.positions[row]) + 1);
    for (size_t p = 0; p < tokens.size(); ++p) {
      const uint8_t* page = table.pages[p / kPageTokens];
      std::memcpy(&tokens[p], page + p % kPageTokens * sizeof(int32_t), sizeof(int32_t));
    }
    return tokens;
  }

  // The text of a row, whose rows stand together.
  static std::vector<int32_t> whole(const StepRows& rows, size_t row) {
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < rows.tokens.size(); ++i) {
      if (rows.sequences[i] != rows.sequences[row]) continue;
      tokens.push_back(static_cast<int32_t>(rows.tokens[i]));
    }
    return tokens;
  }

  FakeOptions options_;
  ModelFacts facts_;
  std::vector<float> logits_, hidden_;
};

// Token t is the character t; 0 is special.
class Characters final : public TextCodec {
 public:
  explicit Characters(size_t vocabulary) {
    for (size_t t = 0; t < vocabulary; ++t) pieces_.push_back(std::string(1, static_cast<char>(t)));
    pieces_[0] = "<end>";
  }
  Status encode(StringView text, bool, bool, std::vector<int32_t>* tokens,
                Message*) const override {
    for (size_t i = 0; i < text.size(); ++i)
      tokens->push_back(static_cast<uint8_t>(text.data()[i]));
    return {};
  }
  std::string decode(Span<const int32_t> tokens, bool skip_special) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (!skip_special || token != 0) text += pieces_[static_cast<size_t>(token)];
    }
    return text;
  }
  size_t vocabulary() const override { return pieces_.size(); }
  StringView piece(int32_t token) const override {
    const std::string& piece = pieces_[static_cast<size_t>(token)];
    return {piece.data(), piece.size()};
  }
  bool is_special(int32_t token) const override { return token == 0; }
  int32_t special(StringView text) const override { return text == "<end>" ? 0 : -1; }

 private:
  std::vector<std::string> pieces_;
};

}  // namespace rushlight::test
