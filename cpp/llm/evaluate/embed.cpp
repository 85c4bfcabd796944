#include "rushlight/llm/evaluate/embed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {
namespace {

// An encoder compares all rows of a call with each other, so that many more cost time.
constexpr size_t kEncoderRows = 128;

// Computes texts in the order of their lengths: in each call as many as have room, and of a decoder
// also a part of the last one.
class Embedder {
 public:
  Embedder(Scheduler& scheduler, Scheduler::Borrower* borrower,
           Span<const std::vector<int32_t>> texts, const EmbedOptions& options,
           std::vector<float>* result)
      : scheduler_(scheduler),
        borrower_(*borrower),
        texts_(texts),
        options_(options),
        result_(*result) {
    order_.resize(texts.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return length(a) < length(b); });
    result->resize(texts.size() * facts_.hidden);
  }

  bool is_done() const { return next_ == order_.size(); }
  // Calls the model once. Needs the turn.
  Status advance(Message* message);

 private:
  struct Part {
    size_t text = 0;
    size_t wanted = 0;  // rows
    bool is_last = false;
  };

  size_t length(size_t text) const { return std::min(texts_[text].size(), facts_.context); }
  Status plan(Message* message);
  bool make_room(size_t count);
  void add_rows(size_t text, size_t count);
  Status take(const Part& part, const float* rows, Message* message);
  Status finish(size_t text, Message* message);

  Scheduler& scheduler_;
  Scheduler::Borrower& borrower_;
  const ModelFacts& facts_ = scheduler_.facts();
  Span<const std::vector<int32_t>> texts_;
  const EmbedOptions& options_;
  std::vector<float>& result_;
  std::vector<size_t> order_;  // of texts
  size_t next_ = 0;            // in it
  size_t done_ = 0;            // tokens of the next text that earlier calls had
  // Of a call.
  std::vector<Part> parts_;
  std::vector<int64_t> tokens_, positions_, sequences_of_, wanted_;
  // Of a decoder; the last one may go on.
  std::vector<std::unique_ptr<Sequence>>& sequences_ = borrower_.sequences;
};

// Room for the next tokens of the next text in the cache.
bool Embedder::make_room(size_t count) {
  if (done_ == 0) borrower_.add()->adapter = options_.adapter;
  if (scheduler_.make_room(sequences_.back().get(), done_, done_ + count)) return true;
  if (done_ == 0) sequences_.pop_back();
  return false;
}

void Embedder::add_rows(size_t text, size_t count) {
  const bool is_first = done_ == 0, is_last = done_ + count == length(text);
  const size_t row = tokens_.size(), wanted = wanted_.size();
  const auto sequence = static_cast<int64_t>(parts_.size());
  for (size_t i = 0; i < count; ++i) {
    tokens_.push_back(texts_[text][done_ + i]);
    positions_.push_back(static_cast<int64_t>(done_ + i));
    sequences_of_.push_back(sequence);
    const bool is_end = is_last && i + 1 == count;
    const bool is_wanted = facts_.pooling == Pooling::Mean ||
                           (facts_.pooling == Pooling::Last ? is_end : is_first && i == 0);
    if (is_wanted) wanted_.push_back(static_cast<int64_t>(row + i));
  }
  parts_.push_back({text, wanted_.size() - wanted, is_last});
}

// Chooses the rows of a call.
Status Embedder::plan(Message* message) {
  parts_.clear();
  for (auto* rows : {&tokens_, &positions_, &sequences_of_, &wanted_}) rows->clear();
  if (done_ == 0) sequences_.clear();
  if (done_ > 0) sequences_.erase(sequences_.begin(), sequences_.end() - 1);
  const size_t most = facts_.is_encoder ? std::min(kEncoderRows, facts_.batch) : facts_.batch;
  while (!is_done()) {
    const size_t text = order_[next_], left = length(text) - done_;
    const size_t count = facts_.is_encoder ? left : std::min(left, most - tokens_.size());
    if (!parts_.empty() && (count == 0 || tokens_.size() + count > most)) break;
    if (!facts_.is_encoder && !make_room(count)) {
      if (!parts_.empty()) break;
      if (!scheduler_.pool().is_full()) return out_of_memory("embed the texts", message);
      return message->fail(Code::OutOfResources,
                           "text %zu, of %zu tokens, has no room in the cache: its limit is %zu "
                           "bytes, and %zu are in use. Raise cache_limit",
                           text, length(text), scheduler_.pool().limit(),
                           scheduler_.pool().bytes());
    }
    add_rows(text, count);
    done_ += count;
    if (done_ < length(text)) break;
    done_ = 0;
    ++next_;
  }
  return {};
}

Status Embedder::advance(Message* message) {
  RL_TRY(plan(message));
  std::vector<KvSequence> tables;
  tables.reserve(sequences_.size());
  for (const auto& sequence : sequences_) tables.push_back(sequence->lent());
  StepRows rows;
  rows.tokens = {tokens_.data(), tokens_.size()};
  rows.positions = {positions_.data(), positions_.size()};
  rows.sequences = {sequences_of_.data(), sequences_of_.size()};
  rows.wanted = {wanted_.data(), wanted_.size()};
  rows.tables = {tables.data(), tables.size()};
  const Result<Span<float>> hidden = scheduler_.model().embed(rows, message);
  if (!hidden.ok()) return hidden.status();
  const float* row = hidden.value().data();
  for (const Part& part : parts_) {
    RL_TRY(take(part, row, message));
    row += part.wanted * facts_.hidden;
  }
  return {};
}

// Adds the wanted rows of a part to the result.
Status Embedder::take(const Part& part, const float* rows, Message* message) {
  float* to = result_.data() + part.text * facts_.hidden;
  for (size_t i = 0; i < part.wanted; ++i) {
    for (size_t k = 0; k < facts_.hidden; ++k) to[k] += rows[i * facts_.hidden + k];
  }
  return part.is_last ? finish(part.text, message) : Status();
}

// Scales the sum of a text's rows.
Status Embedder::finish(size_t text, Message* message) {
  float* to = result_.data() + text * facts_.hidden;
  double squares = 0;
  for (size_t k = 0; k < facts_.hidden; ++k) squares += double{to[k]} * double{to[k]};
  if (!std::isfinite(squares)) {
    return message->fail(Code::InvalidState,
                         "the model's hidden states for text %zu are NaN or infinite: its weights "
                         "are damaged, or it overflows in its number format",
                         text);
  }
  double factor = 1;
  if (facts_.pooling == Pooling::Mean) factor = 1 / static_cast<double>(length(text));
  if (options_.normalize && squares > 0) factor = 1 / std::sqrt(squares);
  for (size_t k = 0; k < facts_.hidden; ++k) to[k] = static_cast<float>(to[k] * factor);
  return {};
}

Status check_length(size_t text, size_t tokens, const ModelFacts& facts,
                    const EmbedOptions& options, Message* message) {
  if (tokens == 0) {
    return message->fail(Code::InvalidArgument,
                         "text %zu has no tokens: give at least one, or leave it out", text);
  }
  if (tokens <= facts.context || options.truncate) return {};
  return message->fail(Code::InvalidArgument,
                       "text %zu has %zu tokens; the model's context has %zu: shorten it, or ask "
                       "for truncate to cut it",
                       text, tokens, facts.context);
}

Status check(Span<const std::vector<int32_t>> texts, const ModelFacts& facts,
             const EmbedOptions& options, Message* message) {
  for (size_t i = 0; i < texts.size(); ++i) {
    RL_TRY(check_length(i, texts[i].size(), facts, options, message));
    for (size_t k = 0; k < texts[i].size(); ++k) {
      const int32_t token = texts[i][k];
      if (token >= 0 && static_cast<size_t>(token) < facts.vocabulary) continue;
      return message->fail(Code::InvalidArgument,
                           "token %zu of text %zu is %d; the model has the tokens 0 to %zu", k, i,
                           static_cast<int>(token), facts.vocabulary - 1);
    }
  }
  return {};
}

Status check_method(const ModelFacts& facts, Message* message) {
  if (facts.hidden > 0) return {};
  return message->fail(Code::NotSupported,
                       "the program has no method 'embed': export the model with embed=True");
}

// Cuts the text, but not the tokens that were added to its end.
Status cut(const Runner& runner, StringView text, std::vector<int32_t>* tokens, Message* message) {
  const size_t context = runner.facts().context;
  if (tokens->size() <= context) return {};
  std::vector<int32_t> plain;
  RL_TRY(runner.encode(text, false, false, &plain, message));
  const size_t added = tokens->size() - std::min(plain.size(), tokens->size());
  size_t before = 0;  // tokens that were added to its beginning
  while (before < added && !std::equal(plain.begin(), plain.end(),
                                       tokens->begin() + static_cast<std::ptrdiff_t>(before))) {
    ++before;
  }
  const size_t after = std::min(added - before, context);
  tokens->erase(tokens->begin() + static_cast<std::ptrdiff_t>(context - after),
                tokens->end() - static_cast<std::ptrdiff_t>(after));
  return {};
}

}  // namespace

Result<std::vector<float>> embed(Runner& runner, Span<const std::vector<int32_t>> texts,
                                 const EmbedOptions& options, Message* message) {
  RL_TRY(check_method(runner.facts(), message));
  RL_TRY(check(texts, runner.facts(), options, message));
  if (options.adapter != nullptr) {
    RL_TRY(check_adapter(*options.adapter, runner.facts().adapters, message));
  }
  return guard("embed the texts", message, [&]() -> Result<std::vector<float>> {
    std::vector<float> result;
    Scheduler::Borrower borrower(runner.scheduler());
    Embedder embedder(runner.scheduler(), &borrower, texts, options, &result);
    while (!embedder.is_done()) {
      runner.scheduler().let_step();
      const Scheduler::Turn turn(runner.scheduler());
      RL_TRY(embedder.advance(message));
    }
    return result;
  });
}

Result<std::vector<float>> embed(Runner& runner, Span<const StringView> texts,
                                 const EmbedOptions& options, Message* message) {
  RL_TRY(check_method(runner.facts(), message));
  return guard("embed the texts", message, [&]() -> Result<std::vector<float>> {
    std::vector<std::vector<int32_t>> tokens(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      RL_TRY(runner.encode(texts[i], true, false, &tokens[i], message));
      RL_TRY(check_length(i, tokens[i].size(), runner.facts(), options, message));
      RL_TRY(cut(runner, texts[i], &tokens[i], message));
    }
    return embed(runner, {tokens.data(), tokens.size()}, options, message);
  });
}

}  // namespace rushlight::llm
