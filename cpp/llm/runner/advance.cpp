// Runs a step, and gives each text the tokens that it chooses from its logits.
#include <algorithm>
#include <string>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/runner/scheduler.h"
#include "rushlight/platform/platform.h"

namespace rushlight::llm {

// Runs some parts, which stand together, as one step.
Result<Span<float>> Scheduler::run_parts(size_t first, size_t count, Message* message) {
  const Part& begin = parts_[first];
  const Part& last = parts_[first + count - 1];
  const size_t rows = last.first_row + last.rows - begin.first_row;
  const size_t wanted = last.first_wanted + last.wanted - begin.first_wanted;
  for (size_t i = 0; i < rows; ++i) {
    sequences_[begin.first_row + i] -= static_cast<int64_t>(first);
  }
  for (size_t i = 0; i < wanted; ++i) {
    wanted_[begin.first_wanted + i] -= static_cast<int64_t>(begin.first_row);
  }
  StepRows step;
  step.tokens = {tokens_.data() + begin.first_row, rows};
  step.positions = {positions_.data() + begin.first_row, rows};
  step.sequences = {sequences_.data() + begin.first_row, rows};
  step.wanted = {wanted_.data() + begin.first_wanted, wanted};
  step.tables = {tables_.data() + first, count};
  return guard("compute a step", message, [&] { return model_->step(step, message); });
}

void Scheduler::run() {
  Message message;
  const Result<Span<float>> logits = run_parts(0, parts_.size(), &message);
  if (!logits.ok() && parts_.size() > 1) return run_alone();
  if (!logits.ok()) return fail({parts_[0].request, parts_[0].choice}, logits.status(), message);
  for (const Part& part : parts_) advance(part, logits.value(), part.first_wanted);
}

// A step failed: each text is tried alone, so that only those at fault fail.
void Scheduler::run_alone() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    Message message;
    const Result<Span<float>> logits = run_parts(i, 1, &message);
    if (logits.ok()) {
      advance(parts_[i], logits.value(), 0);
    } else {
      fail({parts_[i].request, parts_[i].choice}, logits.status(), message);
    }
  }
}

void Scheduler::fail(const Entry& entry, Status status, const Message& message) {
  entry.choice->status = status;
  entry.choice->message = message;
  finish(entry, Finish::Failed);
}

// Also of a choice that has ended, but was not told so yet.
void Scheduler::fail_without_memory(const Entry& entry) {
  Message message;
  const Status status = out_of_memory("go on with the text", &message);
  fail(entry, status, message);
  entry.choice->finish = Finish::Failed;
}

// The rows of a part are in the cache; `wanted` is the first of its logits.
void Scheduler::advance(const Part& part, Span<float> logits, size_t wanted) noexcept {
  if (has_memory_for([&] { add_tokens(part, logits, wanted); })) return;
  fail_without_memory({part.request, part.choice});
}

void Scheduler::add_tokens(const Part& part, Span<float> logits, size_t wanted) {
  Choice& choice = *part.choice;
  Sequence& sequence = *choice.sequence;
  Statistics& figures = part.request->statistics;
  sequence.cached += part.rows - part.guesses;
  sequence.used = tick();
  ++figures.steps;
  if (part.wanted == 0) return;
  if (!choice.is_remembered) remember(sequence);
  choice.is_remembered = true;
  size_t accepted = 0;
  const Entry entry = {part.request, part.choice};
  for (size_t i = 0; i < part.wanted; ++i) {
    const size_t vocabulary = facts_->vocabulary;
    Drawn drawn;
    if (!choose(entry, {logits.data() + (wanted + i) * vocabulary, vocabulary}, &drawn)) break;
    const size_t size = sequence.tokens.size();
    if (!push(entry, drawn) || sequence.tokens.size() != size + 1) break;  // it ended, or shifted
    if (i >= part.guesses || drawn.token != part.guessed[i]) break;
    ++accepted;
    ++sequence.cached;  // the keys and values of the guess
  }
  if (choice.finish == Finish::None) push_forced(entry);
  choice.speculation.learn(part.guesses, accepted);
  figures.guessed_tokens += part.guesses;
  figures.accepted_tokens += accepted;
}

// False if the choice has failed.
bool Scheduler::choose(const Entry& entry, Span<float> logits, Drawn* drawn) {
  Choice& choice = *entry.choice;
  const SamplingOptions& sampling = entry.request->options.sampling;
  const std::vector<int32_t>& tokens = choice.sequence->tokens;
  const History history = {{tokens.data(), tokens.size()}, choice.prompt};
  Message message;
  Status status;
  if (!choice.forced.empty()) {
    drawn->token = choice.forced.back();
    choice.forced.pop_back();
    status = sampler_.measure(logits, history, sampling, drawn, &message);
  } else {
    if (choice.grammar != nullptr) choice.grammar->mask(mask_.data());
    const uint32_t* mask = choice.grammar != nullptr ? mask_.data() : nullptr;
    status = sampler_.sample(logits, mask, history, sampling, {choice.stream, choice.produced},
                             drawn, &message);
  }
  if (!status.ok()) fail(entry, status, message);
  return status.ok();
}

// Adds a chosen or forced token; false if the text ends with it.
bool Scheduler::push(const Entry& entry, const Drawn& drawn) {
  Choice& choice = *entry.choice;
  const GenerateOptions& options = entry.request->options;
  Statistics& figures = entry.request->statistics;
  if (figures.first_token_ns == 0) figures.first_token_ns = now_ns();
  if (ends_text(entry, drawn.token)) {
    finish(entry, Finish::Stop);
    return false;
  }
  if (choice.grammar != nullptr && !choice.grammar->accept(drawn.token)) {
    Message message;
    fail(entry,
         message.fail(Code::Internal, "the grammar does not take token %d that it allowed",
                      static_cast<int>(drawn.token)),
         message);
    return false;
  }
  if (choice.grammar != nullptr && choice.grammar->has_ended()) {  // although ignore_eos is set
    finish(entry, Finish::Stop);
    return false;
  }
  Sequence& sequence = *choice.sequence;
  sequence.tokens.push_back(drawn.token);
  ++choice.produced;
  ++figures.output_tokens;
  choice.fresh.tokens.push_back(drawn);
  if (add_text(entry, drawn.token)) {
    drop_stop(entry);
    finish(entry, Finish::Stop);
  } else if (options.max_tokens > 0 && choice.produced >= options.max_tokens) {
    finish(entry, Finish::Length);
  } else if (choice.grammar != nullptr && choice.grammar->must_end()) {
    finish(entry, Finish::Stop);
  } else if (sequence.tokens.size() >= facts_->context) {
    make_space(entry);
  }
  if (choice.finish != Finish::None) return false;
  if (choice.grammar != nullptr && choice.forced.empty()) find_forced(&choice);
  return true;
}

void Scheduler::find_forced(Choice* choice) {
  choice->grammar->forced(&choice->forced);
  std::reverse(choice->forced.begin(), choice->forced.end());
}

// True for a token that ends the text. It may be one whose text is a stop string.
bool Scheduler::ends_text(const Entry& entry, int32_t token) {
  const std::vector<int32_t>& ends = entry.request->ends;
  if (std::find(ends.begin(), ends.end(), token) == ends.end()) return false;
  Choice& choice = *entry.choice;
  for (const std::string& stop : entry.request->options.stop) {
    if (codec_->special({stop.data(), stop.size()}) != token) continue;
    choice.text.end_by(stop, &choice.fresh.text);
    break;
  }
  return true;
}

// Tokens that the grammar leaves no choice about are not computed one by one, unless their log
// probabilities are asked for.
void Scheduler::push_forced(const Entry& entry) {
  Choice& choice = *entry.choice;
  if (entry.request->options.sampling.logprobs >= 0) return;
  for (size_t count = choice.forced.size(); count > 0; --count) {
    Drawn drawn;
    drawn.token = choice.forced.back();
    choice.forced.pop_back();
    if (!push(entry, drawn)) return;
  }
}

// Those that a text begins with are read in with its prompt, as one.
void Scheduler::push_first_forced(const Entry& entry) noexcept {
  Choice& choice = *entry.choice;
  if (choice.grammar == nullptr) return;
  const bool has_room = has_memory_for([&] {
    find_forced(&choice);
    push_forced(entry);
  });
  if (!has_room) fail_without_memory(entry);
  // The first token is there when the prompt has been read.
  if (choice.finish == Finish::None) entry.request->statistics.first_token_ns = 0;
}

// True if a stop string is complete.
bool Scheduler::add_text(const Entry& entry, int32_t token) {
  if (codec_ == nullptr) return false;
  if (codec_->is_special(token) && !entry.request->options.special) return false;
  Choice& choice = *entry.choice;
  return choice.text.push(codec_->piece(token), &choice.fresh.text);
}

// Takes a stop string out of the tokens. Of a token that it ends within, the text before stays.
void Scheduler::drop_stop(const Entry& entry) {
  Choice& choice = *entry.choice;
  std::vector<int32_t>& tokens = choice.sequence->tokens;
  size_t bytes = choice.text.dropped();
  std::string rest;
  while (bytes > 0 && tokens.size() > choice.prompt) {
    const int32_t token = tokens.back();
    const bool is_shown = !codec_->is_special(token) || entry.request->options.special;
    const StringView piece = is_shown ? codec_->piece(token) : StringView();
    choice.sequence->truncate(tokens.size() - 1);
    if (piece.size() > bytes) rest.assign(piece.data(), piece.size() - bytes);
    bytes -= std::min(bytes, piece.size());
  }
  if (rest.empty()) return;
  const size_t size = tokens.size();
  (void)encode_exactly(*codec_, {rest.data(), rest.size()}, &tokens);
  // More tokens than the one that was cut may be more than the context has.
  if (tokens.size() > facts_->context) tokens.resize(size);
}

// The text has as many tokens as the model has positions.
void Scheduler::make_space(const Entry& entry) {
  const GenerateOptions& options = entry.request->options;
  Choice& choice = *entry.choice;
  Sequence& sequence = *choice.sequence;
  const size_t size = sequence.tokens.size();
  if (options.context_full == ContextFull::Stop) return finish(entry, Finish::Context);
  const size_t dropped = (size - options.keep + 1) / 2;
  sequence.erase(options.keep, dropped);
  const size_t prompt = std::max(choice.prompt, options.keep) - options.keep;
  choice.prompt -= std::min(prompt, dropped);
  entry.request->statistics.recomputed_tokens += sequence.pending();
}

}  // namespace rushlight::llm
