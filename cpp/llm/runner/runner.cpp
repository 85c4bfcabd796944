#include "rushlight/llm/runner/runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {

Status Runner::open(std::unique_ptr<StepModel> model, std::unique_ptr<TextCodec> codec,
                    const RunnerOptions& options, Message* message) {
  model_ = std::move(model);
  codec_ = std::move(codec);
  PageMemory* memory = options.memory != nullptr ? options.memory : &heap_pages();
  return guard("open the model", message, [&] {
    return scheduler_.open(model_.get(), codec_.get(), memory, options.scheduler, message);
  });
}

std::unique_ptr<Session> Runner::new_session() {
  std::unique_ptr<Session> session;
  (void)has_memory_for([&] { session.reset(new Session(this)); });
  return session;
}

// Whether the context and the cache have room for a prompt and a token.
Status Runner::check_room(size_t prompt, Message* message) const {
  const ModelFacts& facts = scheduler_.facts();
  if (prompt == 0) {
    return message->fail(Code::InvalidArgument,
                         "the prompt is empty: give at least one token, or text");
  }
  if (prompt >= facts.context) {
    return message->fail(Code::InvalidArgument,
                         "the prompt has %zu tokens; the model's context has %zu, one of them for "
                         "the output: shorten the prompt to %zu",
                         prompt, facts.context, facts.context - 1);
  }
  const PagePool& pool = scheduler_.pool();
  if (pages_for(prompt + 1) > pool.capacity()) {
    return message->fail(Code::OutOfResources,
                         "the prompt has %zu tokens, which need %zu pages of %zu bytes; "
                         "cache_limit is %zu bytes, %zu pages: raise it",
                         prompt, pages_for(prompt + 1), facts.page_bytes, pool.limit(),
                         pool.capacity());
  }
  return {};
}

// Options that contradict each other or the model.
Status Runner::check(const GenerateOptions& options, Message* message) {
  const ModelFacts& facts = scheduler_.facts();
  if (facts.is_encoder) return refuse_encoder("generate", message);
  RL_TRY(options.sampling.check(facts.vocabulary, message));
  if (options.guesses > kMostGuesses) {
    return message->fail(Code::InvalidArgument, "guesses is %zu; it must be from 0 to %zu",
                         options.guesses, kMostGuesses);
  }
  if (options.n == 0 || options.n > kMostTexts) {
    return message->fail(Code::InvalidArgument, "n is %zu; it must be from 1 to %zu", options.n,
                         kMostTexts);
  }
  if (!options.stop.empty()) RL_TRY(check_codec("stop", message));
  if (options.echo) RL_TRY(check_codec("echo", message));
  for (const std::string& stop : options.stop) {
    if (stop.empty()) return message->fail(Code::InvalidArgument, "stop has an empty text");
  }
  for (const int32_t token : options.stop_tokens) {
    if (token >= 0 && static_cast<size_t>(token) < facts.vocabulary) continue;
    return message->fail(Code::InvalidArgument,
                         "stop_tokens has %d; the model has the tokens 0 to %zu",
                         static_cast<int>(token), facts.vocabulary - 1);
  }
  if (options.grammar != nullptr) RL_TRY(check_grammar(*options.grammar, message));
  if (options.adapter != nullptr) RL_TRY(check_adapter(*options.adapter, facts.adapters, message));
  if (options.context_full == ContextFull::Shift && options.keep + 2 > facts.context) {
    return message->fail(Code::InvalidArgument,
                         "keep is %zu tokens; a shift must be able to drop some of the %zu of the "
                         "context",
                         options.keep, facts.context);
  }
  return {};
}

// A grammar over another tokenizer's vocabulary would allow other texts than it says.
Status Runner::check_grammar(const Grammar& grammar, Message* message) {
  const size_t size = scheduler_.facts().vocabulary;
  if (grammar.vocabulary().size() != size) {
    return message->fail(Code::InvalidArgument,
                         "the grammar is over a vocabulary of %zu tokens, and the model has %zu: "
                         "make it over the runner's own vocabulary",
                         grammar.vocabulary().size(), size);
  }
  const std::lock_guard<std::mutex> lock(vocabulary_mutex_);
  if (codec_ == nullptr || &grammar.vocabulary() == vocabulary_.get()) return {};
  return message->fail(Code::InvalidArgument,
                       "the grammar is over another vocabulary than the model's: make it over the "
                       "runner's own vocabulary");
}

namespace {

// How many of the tokens behind the first `keep` a shift drops, so that a prompt finds room.
size_t dropped_for(size_t prompt, size_t text, size_t keep, size_t context) {
  size_t left = text;
  while (left > keep && left + prompt >= context) left -= (left - keep + 1) / 2;
  return text - left;
}

}  // namespace

Status Runner::check_tokens(Span<const int32_t> tokens, Message* message) const {
  const size_t vocabulary = scheduler_.facts().vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && static_cast<size_t>(tokens[i]) < vocabulary) continue;
    return message->fail(Code::InvalidArgument,
                         "token %zu of the prompt is %d; the model has the tokens 0 to %zu", i,
                         static_cast<int>(tokens[i]), vocabulary - 1);
  }
  return {};
}

// A text of a request, in a session's sequence or, without one, in a new one with the prompt.
std::unique_ptr<Choice> Runner::new_choice(const Request& request, Sequence* sequence,
                                           Span<const int32_t> prompt) {
  auto choice = std::make_unique<Choice>();
  choice->sequence = sequence;
  if (sequence == nullptr) {
    choice->own = std::make_unique<Sequence>(&scheduler_.pool());
    choice->own->reserve(scheduler_.facts().context);
    choice->own->tokens.assign(prompt.begin(), prompt.end());
    choice->own->busy = true;
    choice->own->adapter = request.options.adapter;
    choice->sequence = choice->own.get();
  }
  choice->text.open(&request.options.stop);
  choice->speculation.open(request.options.guesses);
  if (request.options.grammar != nullptr) {
    choice->grammar = std::make_unique<GrammarState>(request.options.grammar, 0);
  }
  return choice;
}

// Starts the texts of a request: in a session's sequence, whose first `kept` tokens stay, or in new
// ones if it is nullptr. Nothing is changed if the request is refused, or there is no memory for
// it.
Status Runner::start(Generation* generation, Sequence* sequence, size_t kept,
                     Span<const int32_t> prompt, const GenerateOptions& options, Message* message) {
  const ModelFacts& facts = scheduler_.facts();
  RL_TRY(check(options, message));
  RL_TRY(check_tokens(prompt, message));
  const bool shifts = options.context_full == ContextFull::Shift;
  const size_t dropped = shifts ? dropped_for(prompt.size(), kept, options.keep, facts.context) : 0;
  const size_t size = kept - dropped + prompt.size();
  RL_TRY(check_room(size, message));
  Request& request = generation->request_;
  request.options = options;
  request.statistics.prompt_tokens = size;
  request.ends = ends_of(options);
  std::string echo;
  if (options.echo) {
    std::vector<int32_t> text;
    if (sequence != nullptr) text.assign(sequence->tokens.begin(), sequence->tokens.end());
    text.resize(kept);
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(std::min(options.keep, kept));
    text.erase(first, first + static_cast<std::ptrdiff_t>(dropped));
    text.insert(text.end(), prompt.begin(), prompt.end());
    echo = codec_->decode({text.data(), text.size()}, !options.special);
  }
  std::vector<std::unique_ptr<Choice>> choices;
  for (size_t i = 0; i < options.n; ++i) {
    choices.push_back(new_choice(request, sequence, prompt));
    choices.back()->prompt = size;
    choices.back()->stream = i;
    choices.back()->outbox.text = echo;
  }
  Scheduler::reserve(&generation->read_);
  scheduler_.submit(&request, std::move(choices));
  if (sequence == nullptr) return {};
  // From here on nothing allocates, and no step comes before the caller's turn ends.
  sequence->truncate(kept);
  if (dropped > 0) sequence->erase(options.keep, dropped);
  request.statistics.recomputed_tokens = dropped > 0 ? sequence->pending() : 0;
  sequence->tokens.insert(sequence->tokens.end(), prompt.begin(), prompt.end());
  sequence->busy = true;
  return {};
}

// The tokens that end a text. Special tokens are no part of the text: where one is what a stop
// string says, it is found by its number.
std::vector<int32_t> Runner::ends_of(const GenerateOptions& options) const {
  std::vector<int32_t> ends = options.stop_tokens;
  if (!options.ignore_eos) ends.insert(ends.end(), ends_.begin(), ends_.end());
  for (const std::string& stop : options.stop) {
    const int32_t token = codec_->special({stop.data(), stop.size()});
    if (token >= 0) ends.push_back(token);
  }
  return ends;
}

Result<std::unique_ptr<Generation>> Runner::generate(Span<const int32_t> prompt,
                                                     const GenerateOptions& options,
                                                     Message* message) {
  return guard("start the text", message, [&]() -> Result<std::unique_ptr<Generation>> {
    std::unique_ptr<Generation> generation(new Generation(&scheduler_));
    RL_TRY(start(generation.get(), nullptr, 0, prompt, options, message));
    return generation;
  });
}

Status Runner::encode(StringView text, bool add_special, bool parse_special,
                      std::vector<int32_t>* tokens, Message* message) const {
  RL_TRY(check_codec("a prompt of text", message));
  return guard("encode the text", message,
               [&] { return codec_->encode(text, add_special, parse_special, tokens, message); });
}

Status Runner::set_template(StringView source, const JsonValue& tokens, Message* message) {
  RL_TRY(check_codec("a chat template", message));
  return guard("read the chat template", message,
               [&] { return chat_.open(source, tokens, codec_.get(), message); });
}

Status Runner::encode_chat(const JsonValue& variables, std::vector<int32_t>* tokens,
                           Message* message) const {
  if (chat_.is_open()) {
    return guard("encode the messages", message,
                 [&] { return chat_.encode(variables, tokens, message); });
  }
  return message->fail(Code::NotSupported,
                       "messages need the model's chat template, and the program has none: export "
                       "it with one, give chat_template= to load(), or write the prompt as text");
}

Result<std::shared_ptr<const Vocabulary>> Runner::vocabulary(Message* message) {
  RL_TRY(check_codec("a grammar", message));
  const std::lock_guard<std::mutex> lock(vocabulary_mutex_);
  if (vocabulary_ != nullptr) return vocabulary_;
  return guard("list the tokens for grammars", message, [&] { return make_vocabulary(message); });
}

Result<std::shared_ptr<const Vocabulary>> Runner::make_vocabulary(Message* message) {
  Vocabulary::Parts parts;
  parts.ends = ends_;
  for (size_t i = 0; i < scheduler_.facts().vocabulary; ++i) {
    const auto token = static_cast<int32_t>(i);
    const bool is_text = i < codec_->vocabulary() && !codec_->is_special(token);
    const StringView piece = i < codec_->vocabulary() ? codec_->piece(token) : StringView();
    parts.pieces.emplace_back(piece.data(), piece.size());
    if (!is_text) parts.special.push_back(token);
  }
  const TextCodec* codec = codec_.get();
  parts.encode = [codec](StringView text, std::vector<int32_t>* tokens) {
    Message unused;
    return codec->encode(text, false, false, tokens, &unused).ok();
  };
  Result<std::shared_ptr<const Vocabulary>> made = Vocabulary::make(std::move(parts), message);
  if (made.ok()) vocabulary_ = made.value();
  return made;
}

Status Runner::check_codec(const char* what, Message* message) const {
  if (codec_ != nullptr) return {};
  return message->fail(Code::NotSupported,
                       "%s needs the model's tokenizer, and the program has none: export it with "
                       "one, give tokenizer= to load(), or use token ids",
                       what);
}

// --- generations --------------------------------------------------------------------------------

Generation::~Generation() {
  if (!request_.choices.empty()) scheduler_->remove(&request_);
}

bool Generation::next(Piece* piece, const std::function<bool()>& goes_on) {
  const int choice = scheduler_->wait(&request_, &read_, goes_on);
  if (choice == Scheduler::kAllRead) return false;
  *piece = {};
  if (choice == Scheduler::kNoNews) return true;
  piece->choice = static_cast<size_t>(choice);
  piece->tokens = {read_.tokens.data(), read_.tokens.size()};
  piece->text = {read_.text.data(), read_.text.size()};
  piece->finish = read_.finish;
  return true;
}

void Generation::cancel() { request_.cancelled = true; }

Status Generation::status(Message* message) const {
  for (const std::unique_ptr<Choice>& choice : request_.choices) {
    if (choice->status.ok()) continue;
    *message = choice->message;
    return choice->status;
  }
  return {};
}

Statistics Generation::statistics() const {
  const Scheduler::Turn turn(*scheduler_);
  return request_.statistics;
}

StringView Generation::stopped_by(size_t choice) const {
  const std::string* stop = request_.choices[choice]->text.stop();
  return stop != nullptr ? StringView(stop->data(), stop->size()) : StringView();
}

}  // namespace rushlight::llm
