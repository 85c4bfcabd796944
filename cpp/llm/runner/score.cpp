#include "rushlight/llm/runner/score.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rushlight/llm/sampling/exponentials.h"

namespace rushlight::llm {
namespace {

float logprob_of(const float* logits, size_t vocabulary, int32_t token) {
  const float maximum = finite_maximum(logits, vocabulary);
  const double sum = sum_of_exponentials(logits, vocabulary, maximum);
  return logits[token] - maximum - static_cast<float>(std::log(sum));
}

// One step over tokens first..first+count-1. Needs the turn.
Status score_piece(Scheduler& scheduler, Sequence* sequence, size_t first, size_t count,
                   std::vector<float>* logprobs, Message* message) noexcept {
  if (!scheduler.make_room(sequence, first, first + count)) {
    return message->fail(Code::OutOfResources,
                         "a text of %zu tokens has no room in the cache: its limit is %zu bytes, "
                         "and %zu are in use. Raise cache_limit",
                         sequence->tokens.size(), scheduler.pool().limit(),
                         scheduler.pool().bytes());
  }
  std::vector<int64_t> tokens, positions, rows;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(sequence->tokens[first + i]);
    positions.push_back(static_cast<int64_t>(first + i));
    rows.push_back(static_cast<int64_t>(i));
  }
  const std::vector<int64_t> sequences(count, 0);
  const KvSequence table = sequence->lent();
  StepRows step;
  step.tokens = {tokens.data(), count};
  step.positions = {positions.data(), count};
  step.sequences = {sequences.data(), count};
  step.wanted = {rows.data(), count};
  step.tables = {&table, 1};
  const Result<Span<float>> logits = scheduler.model().step(step, message);
  if (!logits.ok()) return logits.status();
  sequence->cached = first + count;
  const size_t vocabulary = scheduler.facts().vocabulary;
  for (size_t i = 0; i < count && first + i + 1 < sequence->tokens.size(); ++i) {
    const float logprob = logprob_of(logits.value().data() + i * vocabulary, vocabulary,
                                     sequence->tokens[first + i + 1]);
    if (std::isnan(logprob)) {
      return message->fail(Code::InvalidState,
                           "the model's logits for token %zu of the text are NaN or infinite: its "
                           "weights are damaged, or it overflows in its number format",
                           first + i + 1);
    }
    logprobs->push_back(logprob);
  }
  return {};
}

}  // namespace

Result<std::vector<float>> score(Scheduler& scheduler, Span<const int32_t> tokens,
                                 std::shared_ptr<const Adapter> adapter, Message* message) {
  const ModelFacts& facts = scheduler.facts();
  if (facts.is_encoder) return refuse_encoder("score", message);
  if (adapter != nullptr) RL_TRY(check_adapter(*adapter, facts.adapters, message));
  if (tokens.size() < 2 || tokens.size() > facts.context) {
    return message->fail(Code::InvalidArgument,
                         "a text to score has from 2 to %zu tokens, as many as the context; this "
                         "one has %zu",
                         facts.context, tokens.size());
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && static_cast<size_t>(token) < facts.vocabulary) continue;
    return message->fail(Code::InvalidArgument, "token %d; the model has the tokens 0 to %zu",
                         static_cast<int>(token), facts.vocabulary - 1);
  }
  std::vector<float> logprobs;
  const Scheduler::Borrower borrower(scheduler);
  Sequence sequence(&scheduler.pool());
  sequence.busy = true;
  sequence.adapter = std::move(adapter);
  sequence.tokens.assign(tokens.begin(), tokens.end());
  const size_t most = std::min(facts.batch, facts.wanted);
  Status status;
  for (size_t first = 0; first < tokens.size() && status.ok(); first += most) {
    scheduler.let_step();
    const Scheduler::Turn turn(scheduler);
    const size_t count = std::min(most, tokens.size() - first);
    status = score_piece(scheduler, &sequence, first, count, &logprobs, message);
  }
  const Scheduler::Turn turn(scheduler);
  sequence.truncate(0);
  if (!status.ok()) return status;
  return logprobs;
}

}  // namespace rushlight::llm
