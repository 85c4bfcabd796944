// Texts that language models generate, and their options.
#include <algorithm>

#include "rushlight/c_api/llm/llm_object.h"

namespace rushlight::c_api {
namespace {

using llm::GenerateOptions;

static_assert(RL_FINISH_FAILED == static_cast<int>(llm::Finish::Failed) &&
              RL_FINISH_CONTEXT == static_cast<int>(llm::Finish::Context));

rl_generate_options options_of(const GenerateOptions& from) {
  rl_generate_options options = {};
  options.n = static_cast<uint32_t>(from.n);
  options.max_tokens = from.max_tokens;
  options.seed = from.sampling.seed;
  options.temperature = from.sampling.temperature;
  options.top_p = from.sampling.top_p;
  options.min_p = from.sampling.min_p;
  options.typical_p = from.sampling.typical_p;
  options.top_k = from.sampling.top_k;
  options.repetition_penalty = from.sampling.repetition_penalty;
  options.presence_penalty = from.sampling.presence_penalty;
  options.frequency_penalty = from.sampling.frequency_penalty;
  options.ignores_end = from.ignore_eos;
  options.echoes = from.echo;
  options.has_special = from.special;
  options.shifts = from.context_full == llm::ContextFull::Shift;
  options.keep = from.keep;
  options.guesses = static_cast<uint32_t>(from.guesses);
  options.logprobs = from.sampling.logprobs;
  return options;
}

Status read_options(Model& model, const rl_generate_options* asked, GenerateOptions* to,
                    Message* message) {
  *to = model.runner.defaults();
  if (asked == nullptr) return {};
  rl_generate_options options = options_of(*to);
  RL_TRY(read_struct(asked, &options, "rl_generate_options", message));
  to->n = std::max<size_t>(options.n, 1);
  to->max_tokens = static_cast<size_t>(options.max_tokens);
  to->sampling.seed = options.seed;
  to->sampling.temperature = options.temperature;
  to->sampling.top_p = options.top_p;
  to->sampling.min_p = options.min_p;
  to->sampling.typical_p = options.typical_p;
  to->sampling.top_k = options.top_k;
  to->sampling.repetition_penalty = options.repetition_penalty;
  to->sampling.presence_penalty = options.presence_penalty;
  to->sampling.frequency_penalty = options.frequency_penalty;
  to->ignore_eos = options.ignores_end != 0;
  to->echo = options.echoes != 0;
  to->special = options.has_special != 0;
  to->context_full = options.shifts != 0 ? llm::ContextFull::Shift : llm::ContextFull::Stop;
  to->keep = static_cast<size_t>(options.keep);
  to->guesses = options.guesses;
  to->sampling.logprobs = options.logprobs;
  const auto stop = items_of(options.stop, options.n_stop, "stop", message);
  RL_TRY(stop.status());
  const auto tokens = items_of(options.stop_tokens, options.n_stop_tokens, "stop_tokens", message);
  RL_TRY(tokens.status());
  for (const rl_text_v1 text : stop.value()) {
    const StringView one = view(text);
    to->stop.emplace_back(one.data(), one.size());
  }
  to->stop_tokens.insert(to->stop_tokens.end(), tokens.value().begin(), tokens.value().end());
  if (options.grammar != nullptr) {
    const Lease<GrammarObject> lease(options.grammar, Use::Shared, message);
    RL_TRY(lease.status());
    to->grammar = (*lease).grammar;
  }
  const auto adapter = adapter_of(options.adapter, message);
  to->adapter = adapter.ok() ? adapter.value() : nullptr;
  return adapter.status();
}

rl_statistics statistics_of(const llm::Statistics& from, uint32_t finish) {
  rl_statistics told = {};
  told.finish = finish;
  told.prompt_tokens = from.prompt_tokens;
  told.reused_tokens = from.reused_tokens;
  told.output_tokens = from.output_tokens;
  told.guessed_tokens = from.guessed_tokens;
  told.accepted_tokens = from.accepted_tokens;
  told.recomputed_tokens = from.recomputed_tokens;
  told.steps = from.steps;
  told.submitted_ns = from.submitted_ns;
  told.started_ns = from.started_ns;
  told.first_token_ns = from.first_token_ns;
  told.finished_ns = from.finished_ns;
  return told;
}

// Hands pieces to the caller until it says stop.
class Writer {
 public:
  Writer(const Request& request, bool has_logprobs)
      : request_(request), has_logprobs_(has_logprobs) {}

  // False once the texts are to end.
  bool write(const llm::Piece& piece) {
    if (request_.write == nullptr || is_stopped_) return !is_stopped_;
    tokens_.clear();
    logprobs_.clear();
    for (const llm::Drawn& drawn : piece.tokens) {
      tokens_.push_back(drawn.token);
      if (has_logprobs_) logprobs_.push_back(drawn.logprob);
    }
    rl_piece told = {};
    told.size = sizeof(told);
    told.choice = static_cast<uint32_t>(piece.choice);
    told.text = text_of(piece.text);
    told.tokens = tokens_.data();
    told.logprobs = has_logprobs_ ? logprobs_.data() : nullptr;
    told.n_tokens = static_cast<uint32_t>(tokens_.size());
    told.finish = static_cast<uint32_t>(piece.finish);
    is_stopped_ = request_.write(request_.userdata, &told) != 0;
    return !is_stopped_;
  }

 private:
  const Request& request_;
  bool has_logprobs_;
  bool is_stopped_ = false;
  std::vector<int32_t> tokens_;
  std::vector<float> logprobs_;
};

}  // namespace

Status generate(Model& model, llm::Session* session, const std::atomic<bool>* cancelled,
                Span<const int32_t> prompt, const Request& request, Message* message) {
  GenerateOptions options;
  RL_TRY(read_options(model, request.options, &options, message));
  rl_statistics told = {};
  if (request.statistics != nullptr) {
    told.size = request.statistics->size;
    RL_TRY(write_struct(told, request.statistics, "rl_statistics", message));
  }
  Writer writer(request, options.sampling.logprobs >= 0);
  auto started = session != nullptr ? session->generate(prompt, options, message)
                                    : model.runner.generate(prompt, options, message);
  RL_TRY(started.status());
  llm::Generation& generation = *started.value();
  const auto go_on = [&](const llm::Piece& piece) {
    const bool is_cancelled = cancelled != nullptr && cancelled->load();
    if (!writer.write(piece) || is_cancelled) generation.cancel();
    return true;
  };
  uint32_t finish = RL_FINISH_NONE;
  llm::Piece piece;
  while (generation.next(&piece, [&] { return go_on(llm::Piece()); })) {
    if (piece.finish != llm::Finish::None) finish = static_cast<uint32_t>(piece.finish);
    go_on(piece);
  }
  if (request.statistics != nullptr) {
    told = statistics_of(generation.statistics(), finish);
    RL_TRY(write_struct(told, request.statistics, "rl_statistics", message));
  }
  return generation.status(message);
}

}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_llm_default_options(rl_llm* llm, rl_generate_options* options, rl_error* error) {
  return enter<LlmObject>(llm, Use::Shared, error, [&](LlmObject& object, Failing& failing) {
    return write_struct(options_of(object.model->runner.defaults()), options, "rl_generate_options",
                        &failing.message);
  });
}
