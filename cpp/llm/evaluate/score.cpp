#include "rushlight/llm/evaluate/score.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {
namespace {

// One step over tokens first..first+count-1. Needs the turn.
Status score_piece(Scheduler& scheduler, Sequence* sequence, size_t first, size_t count,
                   const SamplingOptions& options, std::vector<Drawn>* scored, Message* message) {
  if (!scheduler.make_room(sequence, first, first + count)) {
    if (!scheduler.pool().is_full()) return out_of_memory("score the text", message);
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
  for (size_t end = first + 1; end <= first + count && end < sequence->tokens.size(); ++end) {
    Drawn drawn;
    drawn.token = sequence->tokens[end];
    const float* row = logits.value().data() + (end - 1 - first) * vocabulary;
    const History history = {{sequence->tokens.data(), end}, 0};
    RL_TRY(scheduler.sampler().measure({row, vocabulary}, history, options, &drawn, message));
    scored->push_back(drawn);
  }
  return {};
}

}  // namespace

Result<std::vector<Drawn>> score(Scheduler& scheduler, Span<const int32_t> tokens,
                                 int32_t alternatives, std::shared_ptr<const Adapter> adapter,
                                 Message* message) {
  const ModelFacts& facts = scheduler.facts();
  if (facts.is_encoder) return refuse_encoder("score", message);
  if (adapter != nullptr) RL_TRY(check_adapter(*adapter, facts.adapters, message));
  SamplingOptions options;
  options.logprobs = std::max(alternatives, 0);
  RL_TRY(options.check(facts.vocabulary, message));
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
  return guard("score the text", message, [&]() -> Result<std::vector<Drawn>> {
    std::vector<Drawn> scored;
    Scheduler::Borrower borrower(scheduler);
    Sequence* const sequence = borrower.add();
    sequence->busy = true;
    sequence->adapter = std::move(adapter);
    sequence->tokens.assign(tokens.begin(), tokens.end());
    const size_t most = std::min(facts.batch, facts.wanted);
    for (size_t first = 0; first < tokens.size(); first += most) {
      scheduler.let_step();
      const Scheduler::Turn turn(scheduler);
      const size_t count = std::min(most, tokens.size() - first);
      RL_TRY(score_piece(scheduler, sequence, first, count, options, &scored, message));
    }
    return scored;
  });
}

}  // namespace rushlight::llm
