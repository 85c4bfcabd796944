#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/runner/runner.h"

namespace rushlight::llm {
namespace {

// How many of a text's first tokens two texts have in common.
size_t equal_tokens(Span<const int32_t> a, Span<const int32_t> b) {
  size_t equal = 0;
  while (equal < std::min(a.size(), b.size()) && a[equal] == b[equal]) ++equal;
  return equal;
}

}  // namespace

Session::Session(Runner* runner) : runner_(runner), sequence_(&runner->scheduler_.pool()) {
  sequence_.reserve(runner->facts().context);
  const Scheduler::Turn turn(runner_->scheduler_);
  runner_->scheduler_.add_resting(&sequence_);
}

Session::~Session() {
  const Scheduler::Turn turn(runner_->scheduler_);
  runner_->scheduler_.remove_resting(&sequence_);
  runner_->scheduler_.remember(sequence_);
  sequence_.truncate(0);
}

Status Session::check_idle(Message* message) {
  if (!sequence_.busy) return {};
  return message->fail(Code::InvalidState,
                       "the session is generating a text: read it to its end, or cancel and close "
                       "it; for several texts at once, fork the session before");
}

// In a turn.
Result<std::unique_ptr<Generation>> Session::start(size_t kept, Span<const int32_t> prompt,
                                                   const GenerateOptions& options,
                                                   Message* message) {
  if (options.n > 1) {
    return message->fail(Code::InvalidArgument,
                         "n is %zu, but a session has one text: fork it, or generate without a "
                         "session",
                         options.n);
  }
  if (options.adapter != nullptr && options.adapter != sequence_.adapter) {
    return message->fail(Code::InvalidArgument,
                         "the adapter is not the session's: give it when the session is made, or "
                         "set it while the session has no tokens");
  }
  std::unique_ptr<Generation> generation(new Generation(&runner_->scheduler_));
  RL_TRY(runner_->start(generation.get(), &sequence_, kept, prompt, options, message));
  return generation;
}

Result<std::unique_ptr<Generation>> Session::generate(Span<const int32_t> prompt,
                                                      const GenerateOptions& options,
                                                      Message* message) {
  return guard("start the text", message, [&]() -> Result<std::unique_ptr<Generation>> {
    const Scheduler::Turn turn(runner_->scheduler_);
    RL_TRY(check_idle(message));
    return start(sequence_.tokens.size(), prompt, options, message);
  });
}

Result<std::unique_ptr<Generation>> Session::generate_after(Span<const int32_t> text,
                                                            const GenerateOptions& options,
                                                            Message* message) {
  return guard("start the text", message, [&]() -> Result<std::unique_ptr<Generation>> {
    const Scheduler::Turn turn(runner_->scheduler_);
    RL_TRY(check_idle(message));
    const std::vector<int32_t>& old = sequence_.tokens;
    const size_t kept = equal_tokens({old.data(), old.size()}, text);
    RL_TRY(runner_->check_room(text.size(), message));
    RL_TRY(runner_->check_tokens(text, message));
    return start(kept, {text.begin() + kept, text.size() - kept}, options, message);
  });
}

Status Session::set_tokens(Span<const int32_t> tokens, Message* message) {
  const Scheduler::Turn turn(runner_->scheduler_);
  RL_TRY(check_idle(message));
  const ModelFacts& facts = runner_->facts();
  RL_TRY(runner_->check_tokens(tokens, message));
  if (tokens.size() >= facts.context) {
    return message->fail(Code::InvalidArgument,
                         "the text has %zu tokens; the model's context has %zu: shorten it",
                         tokens.size(), facts.context);
  }
  const std::vector<int32_t>& old = sequence_.tokens;
  const size_t kept = equal_tokens({old.data(), old.size()}, tokens);
  sequence_.truncate(kept);
  sequence_.tokens.insert(sequence_.tokens.end(), tokens.begin() + kept, tokens.end());
  return {};
}

Status Session::rewind(size_t count, Message* message) {
  const Scheduler::Turn turn(runner_->scheduler_);
  RL_TRY(check_idle(message));
  if (count > sequence_.tokens.size()) {
    return message->fail(Code::InvalidArgument,
                         "the session has %zu tokens; it cannot be rewound by %zu",
                         sequence_.tokens.size(), count);
  }
  sequence_.truncate(sequence_.tokens.size() - count);
  return {};
}

Result<std::unique_ptr<Session>> Session::fork(Message* message) {
  std::unique_ptr<Session> copy = runner_->new_session();
  if (copy == nullptr) return out_of_memory("fork the session", message);
  const Scheduler::Turn turn(runner_->scheduler_);
  RL_TRY(check_idle(message));
  copy->sequence_.copy_from(sequence_);
  copy->sequence_.used = runner_->scheduler_.tick();
  return copy;
}

Result<std::vector<int32_t>> Session::tokens(Message* message) {
  return guard("list the tokens", message, [&]() -> Result<std::vector<int32_t>> {
    const Scheduler::Turn turn(runner_->scheduler_);
    RL_TRY(check_idle(message));
    return sequence_.tokens;
  });
}

std::shared_ptr<const Adapter> Session::adapter() {
  const Scheduler::Turn turn(runner_->scheduler_);
  return sequence_.adapter;
}

Status Session::set_adapter(std::shared_ptr<const Adapter> adapter, Message* message) {
  const Scheduler::Turn turn(runner_->scheduler_);
  RL_TRY(check_idle(message));
  if (adapter == sequence_.adapter) return {};
  const ModelFacts& facts = runner_->facts();
  if (adapter != nullptr) RL_TRY(check_adapter(*adapter, facts.adapters, message));
  if (!sequence_.tokens.empty()) {
    return message->fail(Code::InvalidState,
                         "the session has %zu tokens, which were computed with another adapter or "
                         "none: rewind them before the adapter is changed, or make a new session",
                         sequence_.tokens.size());
  }
  sequence_.adapter = std::move(adapter);
  return {};
}

SessionOrigin Runner::origin(const std::shared_ptr<const Adapter>& adapter) {
  const ModelFacts& facts = scheduler_.facts();
  const uint64_t digest = adapter == nullptr ? 0 : adapter->digest();
  return {model_->digest(), facts.vocabulary, facts.context, facts.cache, facts.page_bytes, digest};
}

// The file is written from a copy, which shares the pages, so that other texts go on meanwhile.
Status Session::save(const char* path, Message* message) {
  return guard("save the session", message, [&]() -> Status {
    Scheduler::Borrower borrower(runner_->scheduler_);
    Sequence* const copy = borrower.add();
    SessionOrigin origin;
    {
      const Scheduler::Turn turn(runner_->scheduler_);
      RL_TRY(check_idle(message));
      copy->copy_from(sequence_);
      origin = runner_->origin(copy->adapter);
    }
    return save_sequence(*copy, origin, path, message);
  });
}

Result<std::unique_ptr<Session>> Runner::restore(const char* path,
                                                 std::shared_ptr<const Adapter> adapter,
                                                 Message* message) {
  if (facts().is_encoder) return refuse_encoder("continue", message);
  if (adapter != nullptr) RL_TRY(check_adapter(*adapter, facts().adapters, message));
  return guard("restore the session", message,
               [&] { return read_session(path, std::move(adapter), message); });
}

Result<std::unique_ptr<Session>> Runner::read_session(const char* path,
                                                      std::shared_ptr<const Adapter> adapter,
                                                      Message* message) {
  SessionOrigin own;
  {
    const Scheduler::Turn turn(scheduler_);
    own = origin(adapter);
  }
  SavedSession saved;
  RL_TRY(saved.open(path, own, message));
  std::unique_ptr<Session> session(new Session(this));
  Sequence& sequence = session->sequence_;
  const Scheduler::Turn turn(scheduler_);
  sequence.adapter = std::move(adapter);
  sequence.tokens.resize(saved.tokens());
  std::memcpy(sequence.tokens.data(), saved.token_bytes().data(), saved.token_bytes().size());
  sequence.used = scheduler_.tick();
  sequence.busy = true;  // its own pages are not given up for the next ones
  sequence.is_foreign = saved.cached() > 0;
  // Where there is no room for all pages, what is missing is computed when the text goes on.
  for (size_t i = 0; i < pages_for(saved.cached()); ++i) {
    const size_t end = std::min(saved.cached(), (i + 1) * kPageTokens);
    if (!scheduler_.make_room(&sequence, i * kPageTokens, end)) break;
    std::memcpy(sequence.table.page(i), saved.page(i), scheduler_.facts().page_bytes);
    sequence.cached = end;
  }
  sequence.busy = false;
  return session;
}

size_t Session::cached() {
  const Scheduler::Turn turn(runner_->scheduler_);
  return sequence_.cached;
}

}  // namespace rushlight::llm
